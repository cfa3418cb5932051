"""How near a run's kernels are to what the GPU can do: its ceilings, once they are known, and each kernel's floor."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from engine.ir.kernel import Kernel
from engine.ir.roofline import Ceilings, floor_us


@dataclass(frozen=True, slots=True)
class Floor:
    """`us` is the time below which no schedule of the kernel can come, by what `bound` names."""

    kernel: str
    us: float
    bound: str


class Floors:
    """Each floor is given once, as soon as kernel and ceilings are known. Any thread of the run may ask.

    Ceilings that are known from earlier stay, so that a kernel's floor doesn't move from run to run.
    """

    def __init__(self, known: Ceilings | None = None) -> None:
        self._lock = threading.Lock()
        self._kernels: dict[str, Kernel] = {}
        self._given: set[str] = set()
        self.ceilings = known
        self._recorded = known is not None
        self._told = False

    def found(self, kernel: Kernel) -> list[Floor]:
        """The kernel is in the run; its floor, if that is known and was not given before."""
        with self._lock:
            self._kernels.setdefault(kernel.key, kernel)
            return self._fresh()

    def measured(self, ceilings: Ceilings) -> list[Floor]:
        """The GPU's ceilings are there; the floors of the kernels that were found before."""
        with self._lock:
            if self.ceilings is None:
                self.ceilings = ceilings
            return self._fresh()

    def to_record(self) -> Ceilings | None:
        """The ceilings, for the first who asks since they were measured here."""
        with self._lock:
            fresh = None if self._recorded else self.ceilings
            self._recorded = self._recorded or fresh is not None
            return fresh

    def to_tell(self) -> Ceilings | None:
        """The ceilings, for the first who asks in this run."""
        with self._lock:
            fresh = None if self._told else self.ceilings
            self._told = self._told or fresh is not None
            return fresh

    def _fresh(self) -> list[Floor]:
        if self.ceilings is None:
            return []
        fresh = [kernel for key, kernel in self._kernels.items() if key not in self._given]
        self._given.update(kernel.key for kernel in fresh)
        return [Floor(kernel.key, *floor_us(kernel, self.ceilings)) for kernel in fresh]
