"""What a search walks and what guides it: two small protocols, so that the search knows nothing of either side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engine.vocabulary import Fork, Option

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
