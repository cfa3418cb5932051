"""Which grouping a program runs as, and what decided that: the sums, the assembled graphs, or their launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from engine.cli.output import us_text

PDL = "programmatic dependent launch"


class Timed(Protocol):
    """A grouping's times in us: the sum of its kernels, and as one graph without and with dependent launch."""

    @property
    def sum_us(self) -> float | None: ...

    @property
    def assembled_us(self) -> float | None: ...

    @property
    def pdl_us(self) -> float | None: ...

    @property
    def whole_us(self) -> float | None: ...


T = TypeVar("T", bound=Timed)


def chosen_grouping(groupings: Sequence[T]) -> T | None:
    """The one whose graph was fastest; where none was timed as a whole, the one with the smallest sum."""
    best = _fastest(groupings, lambda row: row.whole_us)
    return best if best is not None else _fastest(groupings, lambda row: row.sum_us)


def what_decided(groupings: Sequence[T]) -> str:
    """A sentence on what made the chosen grouping win; "" where nothing but its sum was measured.

    Groupings are named by their place in `groupings`, from 1.
    """
    chosen = _fastest(groupings, lambda row: row.whole_us)
    smallest = _fastest(groupings, lambda row: row.sum_us)
    if chosen is None or smallest is None:
        return ""
    name, other = (
        f"grouping {next(i for i, one in enumerate(groupings, 1) if one is row)}" for row in (chosen, smallest)
    )
    with_pdl = chosen.pdl_us is not None and (chosen.assembled_us is None or chosen.pdl_us < chosen.assembled_us)
    if chosen is smallest:
        return f"{name}: the smallest sum, and the fastest graph{f', with {PDL}' if with_pdl else ''}"
    plain = _fastest(groupings, lambda row: row.assembled_us)
    how = PDL if with_pdl and plain is not chosen else "the assembled graph"
    sums = f"its sum is {us_text(chosen.sum_us)} us, that of {other} {us_text(smallest.sum_us)} us"
    return f"{name}: {how} made it the fastest ({sums})"


def _fastest(groupings: Sequence[T], time: Callable[[T], float | None]) -> T | None:
    timed = [row for row in groupings if time(row) is not None]
    return min(timed, key=lambda row: time(row) or 0.0, default=None)
