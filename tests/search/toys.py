"""Small spaces with known answers, a scorer that is wrong in known ways, and a search driven to its end."""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.search import Node, Path, Proposal, Search
from engine.vocabulary import Fork, KnobValue, Option

Reward = Callable[[Mapping[str, KnobValue]], float | None]


@dataclass
class GridSpace:
    """Every combination of `knobs`, one knob a level, without those that `illegal` rejects on a partial path."""

    knobs: Mapping[str, Sequence[KnobValue]]
    illegal: Callable[[Mapping[str, KnobValue]], bool] = lambda knobs: False
    reverse: bool = False
    asked: list[Path] = field(default_factory=list)

    def fork(self, path: Path) -> Fork | None:
        self.asked.append(path)
        if len(path) == len(self.knobs):
            return None
        name = list(self.knobs)[len(path)]
        fixed = knobs_of(path)
        options = [Option(((name, v),)) for v in self.knobs[name] if not self.illegal({**fixed, name: v})]
        return Fork(name, tuple(reversed(options) if self.reverse else options))


@dataclass
class TreeSpace:
    """A space spelled out: a dict is a fork by option text "KNOB=value", None a leaf, an empty dict a dead end."""

    tree: dict[str, Any] | None

    def fork(self, path: Path) -> Fork | None:
        below: Any = self.tree
        for option in path:
            below = below[str(option)]
        if below is None:
            return None
        return Fork("?", tuple(Option((_knob(text),)) for text in below))


def _knob(text: str) -> tuple[str, KnobValue]:
    name, value = text.split("=")
    return name, int(value)


def knobs_of(path: Path) -> dict[str, KnobValue]:
    return {name: value for option in path for name, value in option.knobs}


def no_opinion(path: Path, options: Sequence[Option]) -> Sequence[float]:
    return [math.nan] * len(options)


def hashed(knobs: Mapping[str, KnobValue], salt: str = "") -> float:
    """A number in (0, 1] that depends on the knobs alone."""
    text = salt + repr(sorted(knobs.items()))
    return (int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") + 1) / 2**32


def hashed_scorer(path: Path, options: Sequence[Option]) -> Sequence[float]:
    return [hashed({**knobs_of(path), **dict(option.knobs)}, "prior") for option in options]


def drive(search: Search, reward: Reward, window: int = 1) -> list[Proposal]:
    """Ask ahead up to `window` proposals and tell in the order they were asked; returns them in that order."""
    flight: deque[Proposal] = deque()
    asked: list[Proposal] = []
    while True:
        while len(flight) < window and (proposal := search.ask()) is not None:
            flight.append(proposal)
            asked.append(proposal)
        if not flight:
            return asked
        proposal = flight.popleft()
        search.tell(proposal, reward(proposal.knobs))


def all_nodes(search: Search) -> list[Node]:
    return [search.node(i) for i in range(search.node_count)]


def as_json(node: Node) -> dict[str, Any]:
    """The whole tree below a node, numbers rounded to what any machine agrees on."""
    return {
        "option": str(node.option),
        "visits": node.visits,
        "best": node.best_reward and float(f"{node.best_reward:.9g}"),
        "prior": float(f"{node.prior:.9g}"),
        "rank": node.rank,
        "state": str(node.state),
        "children": [as_json(child) for child in node.children],
    }
