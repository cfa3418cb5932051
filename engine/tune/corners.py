"""Forbidden corners as a kernel's search meets them: what lies in one is never proposed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.ir.kernel import Kernel
from engine.search import Path
from engine.store import ForbiddenCorner


def corners_of(corners: Sequence[ForbiddenCorner], kernel: Kernel) -> tuple[ForbiddenCorner, ...]:
    """Those that concern the kernel."""
    return tuple(corner for corner in corners if corner.concerns(kernel.key, kernel.family))


def forbids(corners: Sequence[ForbiddenCorner]) -> Callable[[Path], bool] | None:
    """Whether a path lies in one of the corners; None where there is none to ask about."""
    if not corners:
        return None

    def forbidden(path: Path) -> bool:
        knobs = {name: value for option in path for name, value in option.knobs}
        return any(corner.holds(knobs) for corner in corners)

    return forbidden
