"""A space over a given set of full assignments: its only constraint is that a path ends at one of them.

It serves recorded candidates, whose legality rules are unknown: the recorded points are the rule. Each level asks
one group of knobs. A level on which all assignments left agree is no question, so its knobs join the option before
it (or the first options of the tree), and every path still fixes every knob.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.knobs import KNOB_ORDER
from engine.search.space import Path, canonical_order
from engine.vocabulary import Fork, KnobValue, Option, Schedule

_Knobs = tuple[tuple[str, KnobValue], ...]


class EnumeratedSpace:
    """`leaves` are full assignments (repeated ones count once); `levels` are groups of knobs, in the order asked.

    Without `levels` each knob is a level, in canonical order; knobs that `levels` leave out follow in that order.
    Raises ValueError if two levels name the same knob. No leaves at all make a dead end,
    and a single one without knobs is decided from the start.
    """

    def __init__(
        self, leaves: Sequence[Mapping[str, KnobValue]], levels: Sequence[Sequence[str]] | None = None
    ) -> None:
        unique = {Schedule.of(leaf).key: dict(leaf) for leaf in leaves}
        self._leaves = [unique[key] for key in sorted(unique)]
        self._levels = _complete_levels(self._leaves, levels or ())
        self._memo: dict[Path, tuple[int, list[int]]] = {(): (0, list(range(len(self._leaves))))}

    def __len__(self) -> int:
        """How many different assignments there are."""
        return len(self._leaves)

    def fork(self, path: Path) -> Fork | None:
        """See `Space`. Raises ValueError if no assignment lies below `path`."""
        level, members = self._below(path)
        prefix, level = self._agreed(level, members)
        if not members:
            return Fork("assignment", ())
        if level == len(self._levels):
            if path or not prefix:
                return None
            self._memo[(Option(prefix),)] = (level, members)
            return Fork("assignment", (Option(prefix),))
        groups: dict[_Knobs, list[int]] = {}
        for member in members:
            groups.setdefault(self._knobs(member, level), []).append(member)
        options = []
        for knobs, group in groups.items():
            agreed, after = self._agreed(level + 1, group)
            option = Option((*knobs, *(prefix if not path else ()), *agreed))
            self._memo[(*path, option)] = (after, group)
            options.append(option)
        return Fork(" ".join(self._levels[level]), tuple(sorted(options, key=canonical_order)))

    def _below(self, path: Path) -> tuple[int, list[int]]:
        """The level asked after `path`, and the assignments that agree with it."""
        if path not in self._memo and path:
            self.fork(path[:-1])
        if path not in self._memo:
            raise ValueError(f"no recorded assignment has {path[-1]}")
        return self._memo[path]

    def _agreed(self, level: int, members: list[int]) -> tuple[_Knobs, int]:
        """What all members agree on from `level` on, and the first level where they differ."""
        agreed: list[tuple[str, KnobValue]] = []
        while members and level < len(self._levels) and len({self._knobs(member, level) for member in members}) <= 1:
            agreed += self._knobs(members[0], level)
            level += 1
        return tuple(agreed), level

    def _knobs(self, member: int, level: int) -> _Knobs:
        leaf = self._leaves[member]
        return tuple((name, leaf[name]) for name in self._levels[level] if name in leaf)


def _complete_levels(
    leaves: Sequence[Mapping[str, KnobValue]], levels: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], ...]:
    named = [name for level in levels for name in level]
    repeated = sorted({name for name in named if named.count(name) > 1})
    if repeated:
        raise ValueError(f"a knob can be decided on one level only: {', '.join(repeated)}")
    recorded = {name for leaf in leaves for name in leaf}
    rest = sorted(recorded - set(named), key=lambda name: (KNOB_ORDER.get(name, len(KNOB_ORDER)), name))
    return (*(tuple(level) for level in levels), *((name,) for name in rest))
