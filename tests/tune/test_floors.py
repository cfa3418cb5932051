"""Floors are told once, as soon as both the kernel and the GPU's ceilings are known, and kept for later runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.events import CeilingsMeasured, Event, FloorFound
from engine.ir.roofline import Ceilings, floor_us
from engine.measure import DeviceHealth
from engine.snapshot import Snapshot, apply
from engine.store import Store
from engine.tune.floors import Floors

from .fake_device import FakeDevice
from .rig import matmul_program, tune_with

CEILINGS = Ceilings(4000.0, (("bf16", 800.0),))


def test_a_floor_is_given_once_whichever_comes_first(tmp_path: Path) -> None:
    tune_with(tmp_path / "t.db", FakeDevice(), matmul_program())
    with Store.open(tmp_path / "t.db") as store:
        first = store.kernels()[0]
    late, early = Floors(), Floors(CEILINGS)
    assert late.found(first) == []
    (floor,) = late.measured(CEILINGS)
    assert (floor.us, floor.bound) == floor_us(first, CEILINGS)
    assert early.found(first) == [floor]
    assert [*early.found(first), *late.measured(CEILINGS)] == []


def test_only_new_ceilings_are_recorded_and_the_first_ones_stay() -> None:
    assert Floors(CEILINGS).to_record() is None
    fresh = Floors()
    fresh.measured(CEILINGS)
    fresh.measured(Ceilings(1.0, ()))
    assert fresh.to_record() == CEILINGS
    assert fresh.to_record() is None
    assert (fresh.to_tell(), fresh.to_tell()) == (CEILINGS, None)


def test_a_run_keeps_ceilings_and_shows_times_over_floors(tmp_path: Path) -> None:
    device = FakeDevice()
    device.seen = DeviceHealth(ceilings=CEILINGS)
    events: list[Event] = []
    tune_with(tmp_path / "t.db", device, matmul_program(), events=events)
    assert sum(isinstance(event, CeilingsMeasured) for event in events) == 1
    floors = [event.kernel for event in events if isinstance(event, FloorFound)]
    assert len(floors) == len(set(floors)) >= 1
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        assert store.ceilings(device.context.key) == CEILINGS
    snapshot = Snapshot()
    for event in events:
        apply(snapshot, event)
    row = snapshot.kernels[floors[0]]
    assert snapshot.ceilings is not None
    assert row.floor_us is not None
    assert row.over_floor == pytest.approx((row.chosen_us or 0.0) / row.floor_us)
