"""Groupings that can't win: their kernels need more time at least than those of the best grouping take.

Branch and bound (Land and Doig 1960) on the roofline: a kernel that was tuned counts with its best time, another with
its floor (`engine.ir.roofline`). To split a softmax over 2 GB costs more for the traffic alone than the whole
softmax takes, and tuning its parts would be most of the run.

A kernel's search that has begun goes on to its end. It could be cut off where its best so far says that its grouping
can't win: but other groupings have the kernel too, and some of them can, so that the search would be begun again.
Over the recorded layers of a model (`tests/bench/bounding.py`) no candidate would be saved by what is known when a
kernel is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.ir.roofline import Ceilings, floor_us
from engine.tune.floors import Floors

MARGIN = 1.2
"""How far above the best sum a bound has to lie. As one graph a program takes up to a tenth less than its kernels one
by one, and ceilings and times are of clocks that differ by some per cents."""


@dataclass(frozen=True, slots=True)
class _Share:
    """What one kernel of a grouping takes at least: measured, or its floor by what `bound` names."""

    kernel: Kernel
    count: int
    launch_us: float
    bound: str

    @property
    def us(self) -> float:
        return self.count * self.launch_us

    @property
    def text(self) -> str:
        why = f"its floor by {self.bound}" if self.bound else "as measured"
        times = f" {self.count} times" if self.count > 1 else ""
        return f"{self.kernel.label or self.kernel.family} {self.kernel.shape_text}{times} ({why})"


class Bounding:
    """Told what each grouping came to, it says which other groupings can't win; nothing while no floors are known."""

    def __init__(self, floors: Floors) -> None:
        self._floors = floors
        self._kernels_us: dict[str, float] = {}
        self._best_us = math.inf

    def measured(self, sum_us: float | None, kernels_us: Mapping[str, float]) -> None:
        """What a grouping came to (None: it has no sum), and the best times of its kernels, in us."""
        self._kernels_us.update(kernels_us)
        self._best_us = min(self._best_us, math.inf if sum_us is None else sum_us)

    def reason(self, grouping: Grouping) -> str:
        """One sentence on why the grouping can't win, with the kernel that takes most; "" where it may."""
        shares = self._shares(grouping)
        least = sum(share.us for share in shares)
        if not shares or least <= MARGIN * self._best_us:
            return ""
        most = max(shares, key=lambda share: share.us)
        return (
            f"can't win: its kernels take {least:.1f} us at least, those of the best grouping {self._best_us:.1f} us; "
            f"{most.us:.1f} us of it {most.text}"
        )

    def _shares(self, grouping: Grouping) -> tuple[_Share, ...]:
        """Each kernel's part, launches and all; none while the GPU's ceilings aren't known."""
        ceilings = self._floors.ceilings
        if ceilings is None:
            return ()
        counts = grouping.kernel_counts().values()
        return tuple(_Share(kernel, count, *self._at_least(kernel, ceilings)) for kernel, count in counts)

    def _at_least(self, kernel: Kernel, ceilings: Ceilings) -> tuple[float, str]:
        known = self._kernels_us.get(kernel.key)
        return floor_us(kernel, ceilings) if known is None else (known, "")
