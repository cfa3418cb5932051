"""A replay answers with what is recorded, says so where nothing is, and invents nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import wait

import pytest

from engine.ir.plan import Grouping
from engine.measure import AssembledResult, DeviceError, ReplayDevice
from engine.vocabulary import Context, Measurement, Regime, Schedule, Status, Target, Timing
from tests.measure.fake_worker import CONTEXT
from tests.measure.rig import a_kernel, do

KERNEL = a_kernel()
PLAN = Grouping((), (), ())


class Recorded:
    """A recording that holds one measurement and, if asked to, one assembled time."""

    def __init__(self, assembled: AssembledResult | None = None) -> None:
        self._assembled = assembled

    @property
    def context(self) -> Context:
        return CONTEXT

    @property
    def target(self) -> Target:
        return Target()

    def measurement(self, kernel_key: str, schedule: Schedule, regime: Regime) -> Measurement | None:
        if (kernel_key, schedule["DO"], regime) != (KERNEL.key, "known", Regime.RANKING):
            return None
        timing = Timing(5.0, 4.0, 6.0)
        return Measurement(kernel_key, schedule, regime, CONTEXT.key, Status.OK, timing, run_s=0.1)

    def assembled(
        self, grouping: Grouping, schedules: Mapping[str, Schedule], *, pdl: bool = False
    ) -> AssembledResult | None:
        return self._assembled


def test_what_is_recorded_is_served_as_cached() -> None:
    with ReplayDevice(Recorded()) as device:
        result = device.submit(KERNEL, do("known"), Regime.RANKING).result(timeout=1)
    assert result.us == 5.0
    assert result.cached


@pytest.mark.parametrize(("what", "regime"), [("unknown", Regime.RANKING), ("known", Regime.DEPLOY)])
def test_what_is_not_recorded_has_a_state_of_its_own(what: str, regime: Regime) -> None:
    with ReplayDevice(Recorded(), pace=60) as device:
        result = device.submit(KERNEL, do(what), regime).result(timeout=1)
    assert result.status is Status.NOT_RECORDED
    assert (result.timing, result.failure, result.us) == (None, None, None)


def test_assembled_times_are_recorded_ones() -> None:
    timing = Timing(7.0, 6.0, 8.0)
    with ReplayDevice(Recorded(AssembledResult(timing, 1e-3))) as device:
        assert device.assemble(PLAN, {}) == AssembledResult(timing, 1e-3)
    with ReplayDevice(Recorded()) as device:
        assert device.assemble(PLAN, {}) == AssembledResult(None)


def test_answers_come_one_after_the_other_at_the_pace() -> None:
    with ReplayDevice(Recorded(), pace=0.02) as device:
        start = time.monotonic()
        futures = [device.submit(KERNEL, do("known", n), Regime.RANKING) for n in range(3)]
        submitted = time.monotonic() - start
        wait(futures)
        answered = time.monotonic() - start
        assert device.health().busy_s == pytest.approx(0.06)
    assert answered >= 0.06
    assert submitted < answered


def test_closing_ends_a_slow_replay_at_once() -> None:
    device = ReplayDevice(Recorded(), pace=1000)
    futures = [device.submit(KERNEL, do("known", n), Regime.RANKING) for n in range(3)]
    device.close()
    device.close()
    assert all(future.done() for future in futures)
    with pytest.raises(DeviceError, match="closed"):
        device.submit(KERNEL, do("known"), Regime.RANKING).result(timeout=1)
