"""Candidates timed in turns, and the noise floor: what the device makes of the benchmark process's windows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.ir.plan import BufferView, Grouping, KernelCall
from engine.measure import REGIMES, ComparesGraphs, DeviceError
from engine.measure.regimes import TURNS
from engine.vocabulary import FailureKind, Regime
from tests.measure.rig import a_kernel, do, open_fake

KERNEL = a_kernel()


def test_every_candidate_gets_its_windows_in_the_order_asked() -> None:
    with open_fake() as device:
        times = device.compare(KERNEL, [do("fine", number) for number in range(3)])
    assert times.failure is None
    assert times.windows == ((10.0, 10.1, 9.9), (11.0, 11.1, 10.9), (12.0, 12.1, 11.9))


def test_a_fresh_process_is_no_respawn() -> None:
    with open_fake() as device:
        device.submit(KERNEL, do("fine"), Regime.DEPLOY).result(timeout=30)
        for _ in range(2):
            assert device.compare(KERNEL, [do("fine"), do("fine", 1)], fresh=True).windows
        assert device._link.starts == 3
        assert device.health().respawns == 0


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("run-abort", FailureKind.CRASH), ("run-hang", FailureKind.HANG), ("compile-error", FailureKind.COMPILE_ERROR)],
)
def test_a_candidate_in_trouble_ends_the_comparison_and_nothing_else(fault: str, kind: FailureKind) -> None:
    with open_fake() as device:
        times = device.compare(KERNEL, [do("fine"), do(fault)])
        assert times.windows == ()
        assert times.failure is not None
        assert times.failure.kind is kind
        assert device.compare(KERNEL, [do("fine"), do("fine", 1)]).windows


def a_plan() -> Grouping:
    specs = (*KERNEL.body.input_specs(), *KERNEL.body.output_specs())
    views = tuple(BufferView(at, spec) for at, spec in enumerate(specs))
    return Grouping(specs, (KernelCall(KERNEL, views[:-1], (len(specs) - 1,)),), views[-1:])


def test_graphs_of_one_plan_are_timed_in_turns_too() -> None:
    with open_fake() as device:
        assert isinstance(device, ComparesGraphs)
        times = device.compare_graphs(a_plan(), [{KERNEL.key: do("fine", number)} for number in range(2)])
        assert times.windows == ((10.0, 10.1, 9.9), (11.0, 11.1, 10.9))
        wrong = device.compare_graphs(a_plan(), [{KERNEL.key: do("fine")}, {KERNEL.key: do("run-wrong")}])
        assert (wrong.windows, wrong.failure and wrong.failure.kind) == ((), FailureKind.WRONG_RESULT)
        broken = device.compare_graphs(a_plan(), [{KERNEL.key: do("fine")}, {KERNEL.key: do("compile-error")}])
        assert (broken.windows, broken.failure and broken.failure.kind) == ((), FailureKind.COMPILE_ERROR)
        assert device.assemble(a_plan(), {KERNEL.key: do("fine")}).timing is not None


def test_a_closed_device_says_so() -> None:
    with open_fake() as device:
        pass
    with pytest.raises(DeviceError):
        device.compare(KERNEL, [do("fine"), do("fine", 1)])


def test_the_noise_floor_is_there_with_the_first_candidate() -> None:
    with open_fake() as device:
        device.submit(KERNEL, do("fine"), Regime.RANKING).result(timeout=30)
        noise = device.health().noise
    assert noise is not None
    assert 0.0 < noise.share < 0.02
    assert noise.us == pytest.approx(10.0 * noise.share)


def test_turns_are_taken_as_the_deploy_regime_takes_times() -> None:
    assert replace(REGIMES[Regime.DEPLOY], checks=1) == TURNS
