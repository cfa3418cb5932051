"""A whole recorded run of both levels: layer 0 of Qwen3-Embedding-0.6B, bf16, 512 tokens, on an H200, replayed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from engine.events import Assembled, Event, GroupingScored
from engine.session import TuningSession
from engine.store import Store
from engine.tune import Settings

RECORDED = Path(__file__).with_name("layer_h200.db.gz")


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("layer") / "layer.db"
    path.write_bytes(gzip.decompress(RECORDED.read_bytes()))
    return path


def test_the_replay_comes_to_the_recorded_grouping_and_its_graph(layer: Path) -> None:
    session = TuningSession.replay(layer, settings=Settings(surrogate=True))
    session.start()
    assert session.wait(120)
    events: list[Event] = session.drain(10**6)
    session.close()
    assert session.failure is None
    assert session.summary is not None
    with Store.open(layer, read_only=True) as store:
        run = store.latest_run()
        assert run is not None
        recorded = {item.whole_us: item for item in store.recorded_groupings(run.id) if item.whole_us is not None}
    best = recorded[min(recorded)]
    assert session.summary.measured == 0
    assert session.summary.sum_us == pytest.approx(best.sum_us)
    assert session.summary.assembled_us == pytest.approx(best.whole_us)
    assert len(best.grouping.calls) == 6
    sums = [event.sum_us for event in events if isinstance(event, GroupingScored) and event.sum_us is not None]
    assert min(sums) == pytest.approx(best.sum_us)
    assert any(event.pdl and event.assembled_us == best.whole_us for event in events if isinstance(event, Assembled))
