"""What every device does, whichever stands behind it: one suite over the recording and over the real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from engine.measure import Device, ReplayDevice
from engine.vocabulary import Context, Regime, Status, Target
from tests.measure.rig import a_kernel, do, open_fake
from tests.measure.test_replay import Recorded

KERNEL = a_kernel()
OPENERS: dict[str, Callable[[], Device]] = {"cuda": open_fake, "replay": lambda: ReplayDevice(Recorded())}


@pytest.fixture(params=sorted(OPENERS))
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    opened = OPENERS[request.param]()
    yield opened
    opened.close()


def test_it_says_what_it_is(device: Device) -> None:
    assert device.name
    assert isinstance(device.context, Context)
    assert isinstance(device.target, Target)
    assert device.health().respawns == 0


def test_a_measurement_is_of_what_was_asked(device: Device) -> None:
    result = device.submit(KERNEL, do("known"), Regime.RANKING).result(timeout=30)
    assert (result.kernel_key, result.schedule, result.regime) == (KERNEL.key, do("known"), Regime.RANKING)
    assert result.context_key == device.context.key
    assert result.status is Status.OK
    assert result.timing is not None
    assert result.timing.low_us <= result.timing.median_us <= result.timing.high_us


def test_many_at_once_each_get_their_own_answer(device: Device) -> None:
    schedules = [do("known", number) for number in range(20)]
    futures = [device.submit(KERNEL, schedule, Regime.RANKING) for schedule in schedules]
    assert [future.result(timeout=30).schedule for future in futures] == schedules


def test_exactly_one_of_time_and_failure(device: Device) -> None:
    for what in ("known", "run-wrong", "run-abort", "compile-error", "illegal"):
        result = device.submit(KERNEL, do(what), Regime.RANKING).result(timeout=30)
        held = (result.timing is not None) + (result.failure is not None)
        assert held == (0 if result.status is Status.NOT_RECORDED else 1)
        assert (result.status is Status.OK) == (result.timing is not None)


def test_closing_twice_is_closing(device: Device) -> None:
    device.close()
    device.close()
