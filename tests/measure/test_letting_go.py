"""A candidate whose future is cancelled is let go: what it hangs in ends, holds up nobody and is nobody's fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.measure.compile_pool import CompileLimits
from engine.measure.cuda import CudaDevice
from engine.vocabulary import Regime, Status

from .rig import a_kernel, do, open_fake, settled, until

KERNEL = a_kernel()
LIMIT_S = 20.0
"""Less than what hangs is given by its own limit."""


def hung(device: CudaDevice, what: str) -> bool:
    health = device.health()
    if "compile" in what:
        return any(one.age_s > 0.1 for one in health.compiles)
    return any(one.step == "first launch" and one.candidate.schedule for one in health.workers)


@pytest.mark.parametrize("what", ["compile-hang", "run-hang-long"])
def test_what_hangs_holds_up_nobody_once_it_is_let_go(what: str) -> None:
    with open_fake(compilers=1, compile_limits=CompileLimits()) as device:
        assert device.submit(KERNEL, do("fine"), Regime.RANKING).result(LIMIT_S).status is Status.OK
        answers = [device.submit(KERNEL, do(what, number), Regime.RANKING) for number in range(3)]
        until(lambda: hung(device, what))
        for answer in answers:
            assert answer.cancel()
        fine = device.submit(KERNEL, do("fine", 1), Regime.RANKING).result(LIMIT_S)
        assert fine.status is Status.OK
        assert not device.health().respawned
        assert device.health().respawns == 0
        assert not device.health().compiles


def test_one_that_was_let_go_can_be_asked_for_again() -> None:
    with open_fake(compilers=1, compile_limits=CompileLimits(low_s=0.5, high_s=0.5)) as device:
        first = device.submit(KERNEL, do("compile-hang"), Regime.RANKING)
        until(lambda: hung(device, "compile-hang"))
        assert first.cancel()
        again = device.submit(KERNEL, do("compile-hang"), Regime.RANKING).result(LIMIT_S)
        assert again.failure is not None
        assert "far longer" in again.failure.cause


def test_a_compile_that_two_share_goes_on_for_the_other(tmp_path: Path) -> None:
    with open_fake(compilers=1) as device:
        slow = do("compile-slow")
        first, other = (device.submit(KERNEL, slow, Regime.DEPLOY) for _ in range(2))
        assert first.cancel()
        assert other.result(LIMIT_S).status is Status.OK


def test_nothing_is_left_of_what_was_let_go() -> None:
    with open_fake(compilers=1, compile_limits=CompileLimits()) as device:
        folder = device._nursery.folder
        device.submit(KERNEL, do("fine"), Regime.RANKING).result(LIMIT_S)
        for what in ("compile-hang", "run-with-a-child run-hang-long"):
            answer = device.submit(KERNEL, do(what), Regime.RANKING)
            until(lambda what=what: hung(device, what))
            answer.cancel()
        device.submit(KERNEL, do("fine", 1), Regime.RANKING).result(LIMIT_S)
    assert settled(folder)
