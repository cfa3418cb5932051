"""Runs `emmy tune` or a session on a GPU whose processes are scripts: some candidates hang in their compile or launch.

    python -m tests.tune.hanging HOW DATABASE NOTE CODE

NOTE gets the folder of the GPU's processes once a candidate hangs.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import sklearn.ensemble

from engine.cli import tune, tuning
from engine.cli.application import main as emmy
from engine.codegen import KernelSource, illegal_because, render
from engine.ir.kernel import Kernel
from engine.measure import DeviceHealth
from engine.measure.compile_pool import CompileLimits
from engine.measure.cuda import CudaDevice
from engine.session import TuningSession
from engine.session import tuning as session
from engine.tune import LiveRequest, Settings, tune_live, tune_queue
from engine.vocabulary import Schedule, Target
from tests.measure.rig import settings

LOADED = (sklearn.ensemble, tune, tuning)
"""Loaded here, so that it is there when the run needs it."""
HUNG_S = 0.3
"""No candidate that doesn't hang takes so long."""
TEXTS = {"compile": "compile-hang", "launch": "run-hang-long", "fine": ""}


def hangs(kernel: Kernel, schedule: Schedule) -> bool:
    """Every third candidate of the kernels with 512 columns."""
    digest = hashlib.sha256(f"{kernel.key}{schedule.key}".encode()).digest()
    return "512" in kernel.shape_text and digest[0] % 3 == 0


def marked(how: str, kernel: Kernel, schedule: Schedule, target: Target) -> KernelSource:
    """The kernel's own source, with a word to the processes if it hangs."""
    source = render(kernel, schedule, target)
    return replace(source, text=f"{source.text}\n# {TEXTS[how]}\n") if hangs(kernel, schedule) else source


def hung(how: str, health: DeviceHealth) -> bool:
    if how == "compile":
        return any(one.age_s > HUNG_S for one in health.compiles)
    return any(one.step == "first launch" and one.age_s > HUNG_S for one in health.workers)


def open_hanging(how: str, note: Path, name: str, jobs: int | None, **more: Any) -> CudaDevice:
    device = CudaDevice(
        settings(compilers=jobs or 2, compile_limits=CompileLimits()), partial(marked, how), illegal_because
    )
    threading.Thread(target=_tell, args=(how, note, device), daemon=True).start()
    return device


def _tell(how: str, note: Path, device: CudaDevice) -> None:
    while not hung(how, device.health()):
        time.sleep(0.02)
    coming = note.with_name(note.name + ".coming")
    coming.write_text(str(device._nursery.folder))
    coming.rename(note)


def a_session(how: str, note: Path, code: str, database: Path) -> TuningSession:
    """A whole run over such a GPU."""
    request = LiveRequest(code, database, "fake:0", "emmy-tui", partial(open_hanging, how, note))
    return TuningSession(partial(tune_live, request, then=tune_queue), Settings(patience=200, jobs=2), queues=True)


def main() -> None:
    how, database, note, code = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
    made: Callable[..., LiveRequest] = LiveRequest

    def request(*asked: Any, **also: Any) -> LiveRequest:
        return replace(made(*asked, **also), open_device=partial(open_hanging, how, note))

    session.LiveRequest = request  # type: ignore[assignment, attr-defined]
    emmy(["tune", "--code", code, "--db", str(database), "--patience", "200"])


if __name__ == "__main__":
    main()
