"""However many kernels a device tunes at a time, the run leaves the same."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from engine.events import Event, KernelFinished, KernelStarted
from engine.ir.kernel import Kernel
from engine.tune.settings import Settings
from engine.vocabulary import Measurement, Regime, Schedule

from .fake_device import FakeDevice
from .fleet_rig import bests, kept, many_kernels_program
from .rig import tune_with

SETTINGS = Settings(patience=6, outer_patience=2)


class LaterDevice(FakeDevice):
    """Answers a moment later, as a GPU does, so that kernels that are tuned at a time meet."""

    def __init__(self) -> None:
        super().__init__()
        self._pool = ThreadPoolExecutor(4)

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        answer = super().submit(kernel, schedule, regime).result()
        return self._pool.submit(self._later, answer)

    @staticmethod
    def _later(answer: Measurement) -> Measurement:
        threading.Event().wait(0.002)
        return answer

    def close(self) -> None:
        super().close()
        self._pool.shutdown()


def _run(database: Path, at_once: int) -> list[Event]:
    events: list[Event] = []
    device = LaterDevice()
    try:
        tune_with(database, device, many_kernels_program(), SETTINGS, events=events, kernels_per_device=at_once)
    finally:
        device.close()
    return events


def _most_at_once(events: list[Event]) -> int:
    open_now, most = 0, 0
    for event in events:
        open_now += isinstance(event, KernelStarted) - isinstance(event, KernelFinished)
        most = max(most, open_now)
    return most


def test_two_kernels_at_a_time_leave_what_one_after_the_other_does(tmp_path: Path) -> None:
    alone, together = (_run(tmp_path / f"{at_once}.db", at_once) for at_once in (1, 2))
    assert (_most_at_once(alone), _most_at_once(together)) == (1, 2)
    assert bests(alone) == bests(together)
    assert kept(tmp_path / "1.db") == kept(tmp_path / "2.db")


def test_a_run_whose_every_answer_is_known_tunes_one_kernel_at_a_time(tmp_path: Path) -> None:
    first = _run(tmp_path / "t.db", 2)
    again = _run(tmp_path / "t.db", 2)
    assert (_most_at_once(first), _most_at_once(again)) == (2, 1)
    assert bests(first) == bests(again)
