"""Devices of a Ray cluster without GPUs: each actor holds a fake one, and one of them may end its own process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from engine.ir.kernel import Kernel
from engine.measure import Device
from engine.vocabulary import Measurement, Regime, Schedule

from .fake_device import FakeDevice


class LoggedDevice(FakeDevice):
    """Writes each launch into a file of its process; ends the process at launch number `dies_at`."""

    def __init__(self, folder: Path, dies_at: int) -> None:
        super().__init__()
        self._log = folder / f"{os.getpid()}.log"
        self._dies_at = dies_at

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        if len(self.launches) + 1 == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = super().submit(kernel, schedule, regime)
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{kernel.key} {schedule.key} {regime}\n")
        return answer


def opener(folder: Path, dies_at: int = 0) -> Callable[..., Device]:
    """Opens fake devices. Of all that open, the first one ends its process at launch number `dies_at`, if any."""

    def open_one(name: str, *, jobs: int | None = None) -> Device:
        first = not _claimed(folder / "first")
        return LoggedDevice(folder, dies_at if first else 0)

    return open_one


def _claimed(path: Path) -> bool:
    """Whether somebody was here before, in any process."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return True
    return False


def launches(folder: Path) -> dict[str, list[str]]:
    """What each process answered, by its log's name."""
    return {path.name: path.read_text(encoding="utf-8").splitlines() for path in sorted(folder.glob("*.log"))}
