"""A part of a kernel's times: which rows it takes, held against all of them in memory."""

from __future__ import annotations

import json
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.store import Store, sampled
from engine.vocabulary import Schedule

TIMES = st.floats(1.0, 50.0).map(lambda us: round(us, 0))
ROWS = st.dictionaries(st.integers(0, 400), st.tuples(st.none() | TIMES, st.none() | TIMES), min_size=1, max_size=80)
"""Ranking and deploy time by a knob's value; times that tie are likely."""


def write(store: Store, sample, rows: dict[int, tuple[float | None, float | None]]) -> tuple[str, str]:
    """Past the store, as it is quick: only what the reading looks at."""
    run = sample.begin(store)
    place = (sample.matmul.key, sample.context.key)
    ranking = [
        (*place, sample.schedule(BLOCK_K=value).key, "ok" if us else "failed", us, run)
        for value, (us, _) in rows.items()
    ]
    deploy = [
        (f"n{value}-{copy}", *place, sample.schedule(BLOCK_K=value).key, "ok", us + copy, float(copy), run)
        for value, (_, us) in rows.items()
        if us is not None
        for copy in range(value % 3)
    ]
    write = store._connection.db.conn.executemany
    columns = "kernel_key, context_key, schedule"
    write(f"INSERT INTO measurement ({columns}, status, median_us, run) VALUES (?, ?, ?, ?, ?, ?)", ranking)
    write(
        f"INSERT INTO node (key, {columns}, deploy_status, deploy_us, deploy_at, run) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        deploy,
    )
    return place


def expected(times: dict[Schedule, float], fastest: int, others: int) -> dict[Schedule, float]:
    if len(times) <= fastest + others:
        return times
    ranked = sorted(times, key=lambda schedule: (times[schedule], schedule.key))
    rest = sorted(ranked[fastest:], key=lambda schedule: schedule.key)
    places = [int(n * (len(rest) - 1) / max(others - 1, 1)) for n in range(others - 1)] + [len(rest) - 1]
    return {schedule: times[schedule] for schedule in (*ranked[:fastest], *(rest[place] for place in places))}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=ROWS, fastest=st.integers(1, 9), others=st.integers(1, 20))
def test_a_sample_is_what_all_times_in_memory_give(tmp_path_factory, sample, rows, fastest: int, others: int) -> None:
    path = tmp_path_factory.mktemp("sampled") / "t.db"
    with Store.open(path) as store, patch.object(sampled, "PAGE", 7), patch.object(sampled, "MARKS", 5):
        place = write(store, sample, rows)
        times = store.timed(*place)
        assert store.timed_sample(*place, fastest, others) == expected(times, fastest, others)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=ROWS, most=st.integers(1, 30))
def test_an_even_part_has_the_fastest_and_spreads_over_all(tmp_path_factory, sample, rows, most: int) -> None:
    path = tmp_path_factory.mktemp("sampled") / "t.db"
    with Store.open(path) as store, patch.object(sampled, "MARKS", 5):
        place = write(store, sample, rows)
        times = store.timed(*place)
        found = store.timed_evenly(*place, most)
    ranked = sorted(us for us, _ in rows.values() if us is not None)
    if len(ranked) <= most:
        assert (found.times, found.of) == (times, len(times))
        return
    assert found.of == len(ranked)
    assert most <= len(found.times) <= most + 1
    assert all(times[schedule] == us for schedule, us in found.times.items())
    deployed = [us for value, (_, us) in rows.items() if us is not None and value % 3]
    assert min(found.times.values()) <= min(deployed, default=ranked[-1])
    taken = sorted(
        ranking for value, (ranking, _) in rows.items() if ranking and sample.schedule(BLOCK_K=value) in found.times
    )
    assert taken[0] == ranked[0]
    assert taken[-1] >= ranked[len(ranked) - -(-len(ranked) // most)]


def test_what_can_not_be_read_is_left_out_with_a_sentence(store: Store, sample) -> None:
    place = write(store, sample, {value: (10.0 + value, 5.0) for value in range(1, 60)})
    change = store._connection.db.conn.execute
    where = "WHERE json_extract(schedule, '$.BLOCK_K') ="
    change(f"UPDATE measurement SET median_us = 'soon' {where} 1")
    change(f"UPDATE node SET deploy_us = -1 {where} 4")
    change(f"UPDATE measurement SET schedule = CAST(x'7bff7d' AS TEXT) {where} 9")
    found = store.timed_evenly(*place, 57)
    assert len(found.times) in (56, 57)
    some = store.timed_sample(*place, 5, 40)
    assert len(some) in (44, 45)
    assert some.get(sample.schedule(BLOCK_K=4), 14.0) == 14.0
    assert len(store.left_out) == 3
    assert all("can't be read" in sentence for sentence in store.left_out)


def test_rows_with_a_time_are_counted(store: Store, sample) -> None:
    place = write(store, sample, {1: (3.0, 2.0), 2: (None, 4.0), 3: (None, None)})
    assert store.timed_count(*place) == 4
    assert store.timed_count(place[0], "another context") == 0
    assert json.loads(next(iter(store.timed(*place))).key)
