"""The compilers of a run and the folder they fill: of one device, or shared by all the devices that tune in it.

What one device doesn't compile, another one may: a kernel's search starts with many compiles and ends with few.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from engine.measure.compile_pool import CompileLimits, CompilePool
from engine.measure.controls import Controls
from engine.measure.process import Nursery


class Workshop:
    """Stays open until everybody who entered it has left; whoever makes it has entered."""

    def __init__(
        self, command: Sequence[str], compilers: int, limits: CompileLimits, controls: Controls | None = None
    ) -> None:
        """With `controls` every candidate is assembled by their ptxas."""
        self.nursery = Nursery(controls.assembler.environment if controls is not None else {})
        if controls is not None:
            controls.lay_out(self.nursery.sources)
        self.pool = CompilePool(self.nursery, command, compilers, limits)
        self._users = 1
        self._lock = threading.Lock()

    def enter(self) -> Workshop:
        with self._lock:
            self._users += 1
        return self

    def leave(self) -> bool:
        """Say that the caller sends no more work; True for the last one, who closes the pool, then the nursery."""
        with self._lock:
            self._users -= 1
            return self._users == 0
