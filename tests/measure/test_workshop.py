"""Devices of one run share their compilers: one device may leave, the last one closes what they share."""

from __future__ import annotations

from engine.measure.cuda import CudaDevice
from engine.vocabulary import Regime, Status

from .rig import a_kernel, do, illegal_because, open_fake, render, settings, settled


def test_two_devices_compile_in_one_pool_and_leave_nothing() -> None:
    first = open_fake()
    second = CudaDevice(settings(index=1), render, illegal_because, first)
    folder = first._nursery.folder
    with first, second:
        answers = [device.submit(a_kernel(), do("fine", 1), Regime.RANKING) for device in (first, second)]
        assert [answer.result(30).status for answer in answers] == [Status.OK, Status.OK]
        compiled = (folder / "sources" / "compiled.txt").read_text().splitlines()
        assert len(compiled) == 1
    assert settled(folder)
    assert not folder.exists()


def test_the_device_that_opened_the_pool_may_leave_first() -> None:
    first = open_fake()
    with CudaDevice(settings(index=1), render, illegal_because, first) as second:
        first.close()
        assert second.submit(a_kernel(), do("fine", 2), Regime.RANKING).result(30).status is Status.OK
    assert settled(second._nursery.folder)


def test_a_crash_on_one_device_is_told_of_that_device_alone() -> None:
    with open_fake() as first, CudaDevice(settings(index=1), render, illegal_because, first) as second:
        crash = second.submit(a_kernel(), do("run-abort", 3), Regime.RANKING)
        fine = [first.submit(a_kernel(), do("fine", number), Regime.RANKING) for number in range(4, 8)]
        assert crash.result(30).status is Status.FAILED
        assert all(answer.result(30).status is Status.OK for answer in fine)
        assert (first.health().respawns, first.health().busy_s > 0) == (0, True)
