"""Controls files that only break a kernel's candidates, which its search then leaves alone for the rest of the run.

A candidate that takes its benchmark process down costs seconds, and a file that does so on one schedule mostly does it
on others too. It is blamed only for what the same schedule without controls was not seen to do. Its rows stay as they
are; what is set aside, and why, is told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from engine.codegen import acf_of
from engine.events import ControlsChecked
from engine.ir.kernel import Kernel
from engine.search import Path
from engine.tune.experience import without_controls
from engine.tune.workbench import Workbench
from engine.vocabulary import Failure, FailureKind, Measurement, Schedule

SETBACKS = 2
"""A file with so many broken candidates of one kernel, and none that ran, is set aside for it."""
BREAKING = frozenset(
    {
        FailureKind.CRASH,
        FailureKind.HANG,
        FailureKind.ILLEGAL_ACCESS,
        FailureKind.WRONG_RESULT,
        FailureKind.COMPILE_TIMEOUT,
    }
)

Forbidden = Callable[[Path], bool]


class SetAside:
    """What a run set aside, kernel by kernel. Safe to tell from the threads of several devices."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names` are what people call the files, by sha256."""
        self._names = names
        self._lock = threading.Lock()
        self._checked: ControlsChecked | None = None

    def begin(self, checked: ControlsChecked) -> None:
        """What was told of the run's controls so far."""
        self._checked = checked

    def add(self, bench: Workbench, kernel: Kernel, sha256: str, cause: str) -> None:
        """Tell that the kernel's search leaves a file alone from here on."""
        with self._lock:
            if self._checked is not None:
                self._checked = replace(
                    self._checked,
                    at=time.time(),
                    set_aside=(*self._checked.set_aside, sha256),
                    set_aside_kernels=(*self._checked.set_aside_kernels, kernel.key),
                    set_aside_causes=(*self._checked.set_aside_causes, cause),
                )
                bench.tell_event(self._checked)
        name = self._names.get(sha256) or sha256[:12]
        bench.log(f"{kernel.label or kernel.key}: controls file {name} is set aside: {cause}", "warning")


class Setbacks:
    """What one kernel's search knows of files that break its candidates. Depends on the order of its answers alone."""

    def __init__(self, kernel: Kernel, run: SetAside | None) -> None:
        """Without `run` there are no controls to set aside."""
        self._kernel = kernel
        self._run = run
        self._broken: dict[str, list[Failure]] = {}
        self._sound: set[str] = set()
        self._failed_without: set[Schedule] = set()
        self._aside: set[str] = set()

    def learn(self, bench: Workbench, measurement: Measurement) -> None:
        """Take in one answered candidate, and tell if it is the one too many."""
        acf, failure = acf_of(measurement.schedule), measurement.failure
        plain = without_controls(measurement.schedule)
        if not acf:
            if failure is not None:
                self._failed_without.add(plain)
            return
        if measurement.us is not None:
            self._sound.add(acf)
        if failure is None or failure.kind not in BREAKING or plain in self._failed_without:
            return
        broken = self._broken.setdefault(acf, [])
        broken.append(failure)
        if self._run is None or acf in self._sound or acf in self._aside or len(broken) < SETBACKS:
            return
        self._aside.add(acf)
        kinds = ", ".join(dict.fromkeys(f"{one.kind}: {one.cause}" for one in broken))
        self._run.add(bench, self._kernel, acf, f"{len(broken)} candidates failed and none ran ({kinds})")

    def also(self, forbidden: Forbidden | None) -> Forbidden | None:
        """What the search may not enter: as it was, and whatever is set aside by then."""
        if self._run is None:
            return forbidden

        def either(path: Path) -> bool:
            aside = bool(self._aside and path) and any(n == "ACF" and v in self._aside for n, v in path[-1].knobs)
            return aside or (forbidden is not None and forbidden(path))

        return either
