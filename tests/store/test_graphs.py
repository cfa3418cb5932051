"""The fastest graph of a run with a kernel in it: found as all groupings say it, with each plan read once."""

from __future__ import annotations

from unittest.mock import patch

from engine.store import Store, graphs
from engine.vocabulary import Timing


def timed(store: Store, run: str, sample, *times: tuple[float, bool]) -> list[str]:
    schedules = {sample.matmul.key: sample.schedule(), sample.relu.key: sample.schedule(NUM_WARPS=8)}
    names = []
    for us, pdl in times:
        names.append(store.record_grouping(run, sample.grouping))
        store.record_assembled(names[-1], Timing(us, us, us, (us,)), 1e-4, None, schedules, pdl=pdl)
    return names


def test_the_fastest_of_a_run_with_its_schedules(store: Store, run: str, sample) -> None:
    store.record_grouping(run, sample.grouping)
    names = timed(store, run, sample, (30.0, False), (20.0, True), (20.0, False))
    found = store.fastest_graph(run, sample.relu.key)
    assert found is not None
    assert (found.id, found.us, found.pdl) == (names[1], 20.0, True)
    recorded = min((row for row in store.recorded_groupings(run) if row.whole_us), key=lambda row: row.whole_us or 0.0)
    assert (found.id, found.us, dict(found.schedules)) == (recorded.id, recorded.whole_us, dict(recorded.schedules))


def test_none_without_a_graph_that_has_the_kernel(store: Store, run: str, sample) -> None:
    assert store.fastest_graph(run, sample.relu.key) is None
    timed(store, run, sample, (30.0, False))
    assert store.fastest_graph(run, "another kernel") is None
    assert store.fastest_graph("another run", sample.relu.key) is None


def test_a_plan_is_read_once_for_all_kernels_and_again_when_it_was_written(store: Store, run: str, sample) -> None:
    (name,) = timed(store, run, sample, (30.0, False))
    with patch.object(graphs, "grouping_from_json", wraps=graphs.grouping_from_json) as read:
        for kernel in (sample.relu.key, sample.matmul.key, sample.relu.key):
            assert store.fastest_graph(run, kernel) is not None
        assert read.call_count == 1
        store._connection.db.conn.execute("UPDATE grouping SET plan = plan || ' ' WHERE id = ?", (name,))
        assert store.fastest_graph(run, sample.relu.key) is not None
        assert read.call_count == 2


def test_what_cannot_be_read_is_left_out_with_a_sentence(store: Store, run: str, sample) -> None:
    first, second, third = timed(store, run, sample, (10.0, False), (20.0, False), (30.0, False))
    write = store._connection.db.conn.execute
    write("UPDATE grouping SET plan = '{}' WHERE id = ?", (first,))
    write("UPDATE grouping SET assembled_us = 'soon' WHERE id = ?", (second,))
    found = store.fastest_graph(run, sample.relu.key)
    assert found is not None
    assert found.id == third
    assert len(store.left_out) == 2
    assert all(any(name in sentence for sentence in store.left_out) for name in (first, second))
    write("UPDATE grouping SET plan = NULL WHERE id = ?", (third,))
    assert store.fastest_graph(run, sample.relu.key) is None
