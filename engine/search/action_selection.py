"""Which child a descent takes: the score of a child, and how predicted speeds become priors.

Both are plain functions of numbers, so that a screen can show the very terms that decided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def puct(q: float, p: float, parent_visits: int, visits: int, exploration: float) -> float:
    """Score of a child: Q + c * P * sqrt(N_parent + 1) / (1 + N_child). Higher is taken first.

    `q` and `p` lie between 0 and 1; visits include the proposals in flight. The PUCT rule of AlphaGo Zero
    (Silver et al. 2017) with Q as the best reward below the child over the best reward seen. An unvisited child
    has a finite score, so nothing forces a search to try every sibling.
    """
    return q + exploration * p * math.sqrt(parent_visits + 1) / (1 + visits)


def normalized_priors(speeds: Sequence[float]) -> list[float]:
    """Predicted speeds of one sibling set, scaled so that the fastest has 1; no opinion (NaN) counts as 1.

    Dividing by the largest keeps every ratio, whatever the unit; nothing is clipped. An infinite speed is no
    opinion either. Raises ValueError on a negative speed.
    """
    known = [speed for speed in speeds if math.isfinite(speed)]
    if any(speed < 0 for speed in known):
        raise ValueError(f"a predicted speed must not be negative: {min(known)}")
    fastest = max(known, default=0.0)
    if fastest == 0.0:
        return [1.0] * len(speeds)
    return [speed / fastest if math.isfinite(speed) else 1.0 for speed in speeds]


def preference(speeds: Sequence[float]) -> list[int]:
    """Positions of a sibling set from fastest to slowest; equal ones, and those without opinion, keep their order.

    It compares the speeds themselves, so two priors too small to tell apart as a share of the fastest still rank.
    """
    known = [speed for speed in speeds if math.isfinite(speed)]
    fastest = max(known, default=1.0)
    return sorted(range(len(speeds)), key=lambda i: -(speeds[i] if math.isfinite(speeds[i]) else fastest))
