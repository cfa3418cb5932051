"""Training rows of one kernel: its timed candidates, and the branches above them with the best time below each.

A branch is what the first knobs in canonical order fix, where more than one timed candidate shares it; its open knobs
are NaN. Failed candidates have no time and make no row: a wrong or broken candidate never trains the prior as fast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from engine.ir.kernel import Kernel
from engine.knobs import KNOB_ORDER
from engine.prior.features import FeatureMatrix, features
from engine.prior.geometry import Column
from engine.vocabulary import KnobValue, Schedule, Target

MOST = 1_000
"""Candidates of one kernel that train: more of one kernel say little of others, and a refit has to be quick."""
FASTEST = MOST // 4
OTHERS = MOST - FASTEST
"""Of more than MOST: so many of the fastest, and so many others."""


def training_rows(kernel: Kernel, timed: Mapping[Schedule, float], target: Target) -> tuple[FeatureMatrix, Column]:
    """Features and ln us (of times in us, > 0), in an order that depends on the candidates alone.

    Of more than MOST candidates, the fastest quarter of so many and evenly spread others.
    """
    leaves = {schedule.key: (schedule.as_dict(), us) for schedule, us in _sample(timed).items()}
    below: dict[tuple[tuple[str, KnobValue], ...], list[float]] = {}
    for knobs, us in (leaves[key] for key in sorted(leaves)):
        ordered = sorted(knobs.items(), key=lambda knob: (KNOB_ORDER.get(knob[0], len(KNOB_ORDER)), knob[0]))
        for depth in range(1, len(ordered)):
            below.setdefault(tuple(ordered[:depth]), []).append(us)
    branches = [(dict(fixed), min(times)) for fixed, times in below.items() if len(times) > 1]
    rows = [*(leaves[key] for key in sorted(leaves)), *branches]
    matrix = features(kernel, [knobs for knobs, _ in rows], target)
    return matrix, np.log([us for _, us in rows])


def _sample(timed: Mapping[Schedule, float]) -> dict[Schedule, float]:
    usable = {schedule: us for schedule, us in timed.items() if us > 0 and math.isfinite(us)}
    if len(usable) <= MOST:
        return usable
    ranked = sorted(usable, key=lambda schedule: (usable[schedule], schedule.key))
    fastest, rest = ranked[:FASTEST], sorted(ranked[FASTEST:], key=lambda schedule: schedule.key)
    spread = np.linspace(0, len(rest) - 1, OTHERS).astype(np.int64)
    return {schedule: usable[schedule] for schedule in (*fastest, *(rest[place] for place in spread))}


def group_name(kernel_key: str, context_key: str) -> str:
    """The name that a kernel's rows of one context have in a reservoir."""
    return f"{kernel_key}@{context_key}"
