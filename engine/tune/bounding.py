"""Groupings that can't win: their kernels need more time at least than those of the best grouping take.

Branch and bound (Land and Doig 1960) on the roofline: a kernel that was tuned counts with its best time, another with
its floor (`engine.ir.roofline`). To split a softmax over 2 GB costs more for the traffic alone than the whole
softmax takes, and tuning its parts would be most of the run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from engine.ir.plan import Grouping
from engine.ir.roofline import floor_us
from engine.tune.floors import Floors

MARGIN = 1.2
"""How far above the best sum a bound has to lie. As one graph a program takes up to a tenth less than its kernels one
by one, and ceilings and times are of clocks that differ by some per cents."""


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
        """One sentence on why the grouping can't win; "" where it may."""
        least = self.least_us(grouping)
        if least is None or least <= MARGIN * self._best_us:
            return ""
        return f"can't win: its kernels take {least:.1f} us at least, those of the best grouping {self._best_us:.1f} us"

    def least_us(self, grouping: Grouping) -> float | None:
        """What its kernels take at least, in us; None while the GPU's ceilings aren't known."""
        ceilings = self._floors.ceilings
        if ceilings is None:
            return None
        counts = grouping.kernel_counts().values()
        known = self._kernels_us
        return sum(
            count * (known[kernel.key] if kernel.key in known else floor_us(kernel, ceilings)[0])
            for kernel, count in counts
        )
