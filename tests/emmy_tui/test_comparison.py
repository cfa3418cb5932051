"""What the shipped recording shows of a model: its layer beside it, and the grouping that its graph decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from emmy_tui.comparison import Choice, Comparison, read_comparison
from engine.data import demo_database
from engine.snapshot import Snapshot, apply
from engine.store import Store, StoredRun


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_database(tmp_path_factory.mktemp("demo"))


def model_run(store: Store) -> StoredRun:
    """The run with most kernels: that of the whole model."""
    return max(store.runs(), key=lambda run: len(store.run_results(run.id)))


def common(found: Comparison) -> int:
    return len({one.kernel for one in found.a.kernels} & {one.kernel for one in found.b.kernels})


def test_a_run_without_an_earlier_one_stands_beside_the_one_most_like_it(demo: Path) -> None:
    with Store.open(demo, read_only=True) as store:
        found = read_comparison(Choice(a=model_run(store).id))(store)
        own = {result.kernel for result in found.a.kernels}
        most = max(
            len(own & {result.kernel for result in store.run_results(run.id)})
            for run in store.runs()
            if run.id != found.a.run.id
        )
    assert found.a.run.target != found.b.run.target
    assert common(found) == most > 5


def test_the_newest_run_that_has_something_in_common_with_another_is_shown_first(demo: Path) -> None:
    with Store.open(demo, read_only=True) as store:
        found = read_comparison(Choice())(store)
        assert common(found)
        runs = store.runs()
        newer = runs[[run.id for run in runs].index(found.a.run.id) + 1 :]
        assert newer
        assert not any(common(read_comparison(Choice(a=run.id))(store)) for run in newer)
        last = runs[-1]
        assert read_comparison(Choice(b=runs[0].id))(store).a.run == last


def test_the_grouping_that_leads_is_the_one_whose_graph_was_fastest(demo: Path) -> None:
    with Store.open(demo, read_only=True) as store:
        run = model_run(store)
        snapshot = Snapshot()
        for event in store.events_of(run.id):
            snapshot = apply(snapshot, event)
        recorded = [item for item in store.recorded_groupings(run.id) if item.whole_us is not None]
    leading = snapshot.leading_grouping()
    assert leading is not None
    assert leading.whole_us == min(item.whole_us or 0.0 for item in recorded)
    assert len(recorded) > 1
    assert snapshot.sum_best_us() == pytest.approx(leading.sum_us)
    assert sum(leading.counts) == 143
