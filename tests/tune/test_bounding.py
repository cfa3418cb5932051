"""Groupings that can't win are not tuned, and leaving them out never changes what wins."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.events import Event, GroupingEntered, GroupingScored, GroupingsExplored, KernelFound, NodeState
from engine.ir.kernel import Kernel
from engine.ir.roofline import Ceilings, floor_us
from engine.measure import DeviceHealth
from engine.snapshot import Snapshot, apply
from engine.store import Store
from engine.vocabulary import Schedule

from .fake_device import FakeDevice, landscape_us
from .rig import linear_gelu_program, tune_with

SLOW_MEMORY = Ceilings(1.0, (("bf16", 800.0),))
"""So that what each grouping moves decides: the product alone and the rest behind it move three times as much."""
FAST_MEMORY = Ceilings(1e6, (("bf16", 1e-3),))
"""So that the product decides, which every grouping has."""


def near_the_floor(ceilings: Ceilings, factors: dict[str, float] | None = None) -> FakeDevice:
    """Every kernel's best takes its floor times a factor, 1 unless given."""

    def us(kernel: Kernel, schedule: Schedule) -> float:
        worse = 1.0 + landscape_us(kernel, schedule) % 1.0
        return floor_us(kernel, ceilings)[0] * (factors or {}).get(kernel.key, 1.0) * worse

    device = FakeDevice(us)
    device.seen = DeviceHealth(ceilings=ceilings)
    return device


def tuned(device: FakeDevice, folder: Path) -> list[Event]:
    events: list[Event] = []
    tune_with(folder / "t.db", device, linear_gelu_program(), events=events)
    return events


def scores(events: list[Event]) -> list[GroupingScored]:
    return [event for event in events if isinstance(event, GroupingScored)]


def test_a_grouping_whose_traffic_alone_takes_longer_is_not_tuned(tmp_path: Path) -> None:
    device = near_the_floor(SLOW_MEMORY)
    events = tuned(device, tmp_path)
    first, *others = scores(events)
    assert not first.bounded
    assert others
    assert all(one.bounded and one.sum_us is None and "us at least" in one.reason for one in others)
    assert all("us of it " in one.reason and one.reason.endswith("(its floor by memory)") for one in others)
    entered = {event.grouping: event.kernels for event in events if isinstance(event, GroupingEntered)}
    assert {key for key, _, _ in device.launches} == set(entered[first.grouping])
    assert {event.kernel for event in events if isinstance(event, KernelFound)} == set(entered[first.grouping])
    (explored,) = (event for event in events if isinstance(event, GroupingsExplored))
    assert (explored.entered, explored.bounded, explored.failed) == (1 + len(others), len(others), 0)


def test_it_is_marked_so_on_the_screen_and_in_the_database(tmp_path: Path) -> None:
    events = tuned(near_the_floor(SLOW_MEMORY), tmp_path)
    snapshot = Snapshot()
    for event in events:
        apply(snapshot, event)
    bounded = {one.grouping for one in scores(events) if one.bounded}
    assert {row.grouping for row in snapshot.groupings.values() if row.bounded} == bounded
    states = [row.state for row in snapshot.nodes.values() if not row.kernel]
    assert states.count(NodeState.BOUNDED) == len(bounded)
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        reasons = {row.id: row.reason for row in store.recorded_groupings(store.runs()[0].id)}
    assert all(reasons[one.grouping] == one.reason for one in scores(events))


@pytest.mark.parametrize("ceilings", [None, FAST_MEMORY])
def test_what_may_win_is_tuned(ceilings: Ceilings | None, tmp_path: Path) -> None:
    device = near_the_floor(FAST_MEMORY)
    device.seen = DeviceHealth(ceilings=ceilings)
    assert all(one.sum_us is not None and not one.bounded for one in scores(tuned(device, tmp_path)))


def test_a_repeated_run_leaves_out_the_same_and_launches_nothing(tmp_path: Path) -> None:
    first = tuned(near_the_floor(SLOW_MEMORY), tmp_path)
    again = near_the_floor(SLOW_MEMORY)
    second = tuned(again, tmp_path)
    assert again.launches == []
    assert [(one.sum_us, one.reason) for one in scores(second)] == [(one.sum_us, one.reason) for one in scores(first)]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.floats(1.0, 4.0), min_size=8, max_size=8), st.sampled_from([SLOW_MEMORY, FAST_MEMORY]))
def test_the_winner_is_that_of_tuning_them_all(factors: list[float], ceilings: Ceilings) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        probe = tuned(near_the_floor(ceilings), Path(one))
        keys = sorted({key for event in probe if isinstance(event, GroupingEntered) for key in event.kernels})
        given_factors = dict(zip(keys, factors, strict=False))
        (Path(one) / "t.db").unlink()
        bounded = tuned(near_the_floor(ceilings, given_factors), Path(one))
        device = near_the_floor(ceilings, given_factors)
        device.seen = DeviceHealth()
        whole = tuned(device, Path(other))
    best = min(one.sum_us for one in scores(whole) if one.sum_us is not None)
    assert min(one.sum_us for one in scores(bounded) if one.sum_us is not None) == best
