"""The Pareto front of what was measured: the points that no other point beats in everything."""

from __future__ import annotations

from collections.abc import Sequence


def pareto_front(points: Sequence[Sequence[float]]) -> tuple[int, ...]:
    """Positions of the points that no other point is at most as large as in every number and smaller in one.

    In the order of the first number, the smallest first; of equal points the first one given. Any number of dimensions,
    all to be made small, such as time (us) and registers a thread.
    """
    order = sorted(range(len(points)), key=lambda at: (tuple(points[at]), at))
    front: list[int] = []
    for at in order:
        if not any(all(a <= b for a, b in zip(points[kept], points[at], strict=True)) for kept in front):
            front.append(at)
    return tuple(front)
