"""What a search walks and what guides it: two small protocols, so that the search knows nothing of either side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.knobs import canonical_position
from engine.vocabulary import Fork, KnobValue, Option

Path = tuple[Option, ...]


class Space(Protocol):
    """A lazily built tree of forks."""

    def fork(self, path: Path) -> Fork | None:
        """The question asked after the options of `path`, or None when everything is decided.

        A fork without options is a dead end. The answer depends on `path` alone; options come in canonical order.
        """
        ...


class Scorer(Protocol):
    """Predicted speeds of sibling options (any positive unit, higher is faster; NaN where there is no opinion)."""

    def __call__(self, path: Path, options: Sequence[Option]) -> Sequence[float]: ...


_KnobOrder = tuple[tuple[int, int], str, bool, float, str]


def knob_order(name: str, value: KnobValue) -> _KnobOrder:
    """Sort key of one knob value: the knob table first; what the table lacks sorts by name, then by value."""
    is_text = isinstance(value, str)
    return canonical_position(name, value), name, is_text, 0.0 if is_text else float(value), str(value)


def canonical_order(option: Option) -> tuple[_KnobOrder, ...]:
    """Sort key that puts options in canonical knob order, whatever the order in which a space emits them."""
    return tuple(sorted(knob_order(name, value) for name, value in option.knobs))
