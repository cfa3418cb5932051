"""A recording answers with what was recorded in its run's context, and with nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.store import Recording, Store, StoreError
from engine.vocabulary import Regime, Target, Timing


def test_it_answers_like_the_device_that_was_recorded(store: Store, run: str, sample) -> None:
    store.record_context(sample.context, Target(multiprocessors=7))
    schedules = {sample.matmul.key: sample.schedule(), sample.relu.key: sample.schedule()}
    for measurement in (sample.ok(), sample.ok(9.0, Regime.DEPLOY), sample.failed(NUM_WARPS=8)):
        store.record_measurement(measurement, run=run)
    store.record_assembled(store.record_grouping(run, sample.grouping), Timing(31.0, 30.0, 32.0), 1e-3, None, schedules)
    recording = Recording(store)
    key = sample.matmul.key
    assert (recording.context, recording.target.multiprocessors) == (sample.context, 7)
    assert recording.measurement(key, sample.schedule(), Regime.RANKING) == replace(sample.ok(), cached=True)
    assert recording.measurement(key, sample.schedule(), Regime.DEPLOY).us == 9.0
    assert recording.measurement(key, sample.schedule(NUM_WARPS=8), Regime.RANKING).failure == sample.failed().failure
    assert recording.measurement(key, sample.schedule(NUM_WARPS=8), Regime.DEPLOY) is None
    assert recording.measurement(key, sample.schedule(NUM_WARPS=16), Regime.RANKING) is None
    for asked in (None, schedules):
        assert recording.assembled(sample.grouping, asked).timing.median_us == 31.0
    assert recording.assembled(sample.grouping, {sample.matmul.key: sample.schedule(NUM_WARPS=8)}) is None
    assert recording.assembled(replace(sample.grouping, decisions=())) is None


def test_the_run_picks_the_context(store: Store, run: str, sample) -> None:
    other = replace(sample.context, gpu="NVIDIA A100")
    store.record_context(other)
    store.record_measurement(sample.ok(), run=run)
    store.start_run(replace(sample.run_info(), context_key=other.key))
    first, second = store.runs()
    assert Recording(store).context == other
    assert Recording(store, second).measurement(sample.matmul.key, sample.schedule(), Regime.RANKING) is None
    assert Recording(store, first).measurement(sample.matmul.key, sample.schedule(), Regime.RANKING).us == 10.0


def test_nothing_to_replay_is_said(store: Store, run: str, sample, tmp_path) -> None:
    with Store.open(tmp_path / "empty.db") as empty, pytest.raises(StoreError, match="no run to replay"):
        Recording(empty)
    with pytest.raises(StoreError, match="on which GPU"):
        Recording(store, replace(store.runs()[0], context_key="gone"))
