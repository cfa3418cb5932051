"""What a kernel's search tries first: its pin, and what was pinned or measured on another GPU, toolchain or shape.

A suggestion is worth a candidate and no more: measured, it is evidence; failed, it is out of the way. What the space
doesn't offer is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from engine.knobs import KNOBS
from engine.search import Proposal, Search
from engine.vocabulary import KnobValue, Schedule

MOST = 8
"""Suggestions that one search tries; the fastest elsewhere come first."""


class SuggestionsFirst:
    """Asks a search for the suggested candidates, and then for its own."""

    def __init__(self, search: Search, suggested: Sequence[Schedule]) -> None:
        self._search = search
        self._left = deque(suggested[:MOST])

    def ask(self) -> Proposal | None:
        """The next candidate, as `Search.ask` says it."""
        while self._left:
            off: dict[str, KnobValue] = {name: knob.off for name, knob in KNOBS.items()}
            proposal = self._search.ask_with(off | self._left.popleft().as_dict())
            if proposal is not None:
                return proposal
        return self._search.ask()
