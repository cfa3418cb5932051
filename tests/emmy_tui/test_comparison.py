"""What the shipped recording shows of a model: its layer beside it, and the grouping that its graph decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from emmy_tui.comparison import Choice, read_comparison
from engine.data import demo_database
from engine.snapshot import Snapshot, apply
from engine.store import Store


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_database(tmp_path_factory.mktemp("demo"))


def test_a_run_without_an_earlier_one_stands_beside_the_one_most_like_it(demo: Path) -> None:
    with Store.open(demo, read_only=True) as store:
        found = read_comparison(Choice())(store)
        kernels = [{result.kernel for result in side.kernels} for side in (found.a, found.b)]
        most = max(
            len(kernels[0] & {result.kernel for result in store.run_results(run.id)})
            for run in store.runs()
            if run.id != found.a.run.id
        )
    assert found.a.run.target != found.b.run.target
    assert len(kernels[0] & kernels[1]) == most > 5


def test_the_grouping_that_leads_is_the_one_whose_graph_was_fastest(demo: Path) -> None:
    with Store.open(demo, read_only=True) as store:
        run = store.runs()[-1]
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
