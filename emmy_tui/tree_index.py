"""Which tree node stands on which line, for a tree of any size.

Every open node knows how many lines each of its children takes, so that finding a line costs the depth of the tree and
a change costs its path to the root; nothing here walks all nodes. Siblings keep the order in which the search offers
them, and those never tried share one line under the tried ones, because most of a space is never tried.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from engine.events import NodeState
from engine.snapshot import NodeRow, Snapshot

ROOT = ""


@dataclass(frozen=True, slots=True)
class Key:
    """A line's name: a node, or the line that stands for the untried children of `node`."""

    node: str
    untried: bool = False


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One visible line. `hidden` counts the untried siblings it stands for, `opened` is None for a leaf."""

    key: Key
    depth: int
    opened: bool | None
    hidden: int = 0
    hidden_prior: float = 0.0


@dataclass(slots=True)
class _Listing:
    """The children of an open node, in the order of their lines. `offsets` has one entry more than `entries`."""

    entries: list[Key]
    offsets: list[int]
    hidden: int = 0
    hidden_prior: float = 0.0
    places: dict[Key, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.offsets[-1]

    def place(self, key: Key) -> int | None:
        if not self.places:
            self.places = {entry: place for place, entry in enumerate(self.entries)}
        return self.places.get(key)


def is_tried(node: NodeRow) -> bool:
    return node.visits > 0 or node.state != NodeState.OPEN


class TreeIndex:
    """Lines of a snapshot's tree. `touch` must be told the nodes that changed."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._nodes = snapshot.nodes
        self._roots = snapshot.roots
        self._opened: set[str] = set()
        self._shut: set[str] = set()
        self._followed: frozenset[str] = frozenset()
        self._listed: set[str] = set()
        self._listings: dict[str, _Listing] = {}
        self._rebuild({ROOT})

    def __len__(self) -> int:
        return self._listings[ROOT].size

    def is_open(self, node: str) -> bool:
        return node in self._listings

    def parent(self, node: str) -> str:
        row = self._nodes.get(node)
        return row.parent if row is not None and row.parent in self._nodes else ROOT

    def path(self, node: str) -> list[str]:
        """Node names from the root down to `node`."""
        names: list[str] = []
        while node in self._nodes:
            names.append(node)
            node = self.parent(node)
        return names[::-1]

    def touch(self, nodes: Iterable[str]) -> None:
        """Take in what changed. Costs the touched siblings and their paths."""
        dirty = {self.parent(node) for node in nodes if node in self._nodes}
        self._rebuild(dirty & self._listings.keys())

    def open(self, node: str) -> None:
        self._opened.add(node)
        self._shut.discard(node)
        self._sync({node})

    def close(self, node: str) -> None:
        self._opened.discard(node)
        self._shut.add(node)
        self._sync({node})

    def follow(self, nodes: Collection[str]) -> None:
        """Hold these nodes open, and let go those held before, unless a person opened or closed them."""
        before, self._followed = self._followed, frozenset(nodes)
        if before != self._followed:
            self._sync(before ^ self._followed)

    def keep(self) -> None:
        """Leave open what `follow` holds open."""
        self._opened |= self._followed
        self._followed = frozenset()

    def list_untried(self, node: str, listed: bool) -> None:
        """Show the untried children of `node` one by one, or as one line."""
        (self._listed.add if listed else self._listed.discard)(node)
        self._rebuild({node} & self._listings.keys())

    def lists_untried(self, node: str) -> bool:
        return node in self._listed

    def _sync(self, nodes: Collection[str]) -> None:
        dirty: set[str] = set()
        opening: set[str] = set()
        for node in nodes:
            wanted = node in self._nodes and (node in self._opened or node in self._followed) and node not in self._shut
            if wanted and node not in self._listings:
                opening.add(node)
            elif not wanted and self._listings.pop(node, None) is not None:
                dirty.add(self.parent(node))
        self._rebuild(opening | (dirty & self._listings.keys()))

    def _depth(self, node: str) -> int:
        depth = 0
        while node:
            node = self.parent(node)
            depth += 1
        return depth

    def _rebuild(self, dirty: set[str]) -> None:
        """List the children of these nodes again, deepest first, and of every ancestor whose lines moved by it."""
        levels: dict[int, set[str]] = {}
        for node in dirty:
            levels.setdefault(self._depth(node), set()).add(node)
        for depth in range(max(levels, default=-1), -1, -1):
            for node in levels.get(depth, ()):
                before = self._listings.get(node)
                listing = self._listings[node] = self._list(node)
                if node != ROOT and (before is None or before.size != listing.size):
                    parent = self.parent(node)
                    if parent in self._listings:
                        levels.setdefault(depth - 1, set()).add(parent)

    def _list(self, node: str) -> _Listing:
        if node == ROOT:
            entries = [Key(root) for root in self._roots]
            return _Listing(entries, [0, *accumulate(self._height(entry) for entry in entries)])
        rows = [self._nodes[child] for child in self._nodes[node].children]
        entries = [Key(row.node) for row in rows if is_tried(row)]
        untried = [row for row in rows if not is_tried(row)]
        if untried:
            entries.append(Key(node, untried=True))
        if node in self._listed:
            entries += [Key(row.node) for row in untried]
        offsets = [0, *accumulate(self._height(entry) for entry in entries)]
        return _Listing(entries, offsets, len(untried), max((row.prior for row in untried), default=0.0))

    def _height(self, key: Key) -> int:
        listing = None if key.untried else self._listings.get(key.node)
        return 1 if listing is None else 1 + listing.size

    def position(self, key: Key) -> int | None:
        """The line of a key, or None while a closed ancestor hides it."""
        line = 0
        while True:
            owner = key.node if key.untried else self.parent(key.node)
            listing = self._listings.get(owner)
            place = None if listing is None else listing.place(key)
            if listing is None or place is None:
                return None
            line += listing.offsets[place]
            if owner == ROOT:
                return line
            line += 1
            key = Key(owner)

    def nearest(self, key: Key) -> Key | None:
        """The key itself, or its nearest ancestor that has a line."""
        while self.position(key) is None:
            node = key.node if key.untried else self.parent(key.node)
            if node == ROOT:
                return None
            key = Key(node)
        return key

    def lines(self, start: int, count: int) -> list[TreeLine]:
        """At most `count` lines from line `start` on."""
        found: list[TreeLine] = []
        for line in self._walk(ROOT, 0, max(0, start)):
            if len(found) >= count:
                break
            found.append(line)
        return found

    def _walk(self, node: str, depth: int, skip: int) -> Iterator[TreeLine]:
        listing = self._listings[node]
        place = bisect_right(listing.offsets, skip) - 1
        skip -= listing.offsets[place]
        for key in listing.entries[place:]:
            if key.untried:
                yield TreeLine(key, depth, key.node in self._listed, listing.hidden, listing.hidden_prior)
                continue
            opened = key.node in self._listings
            if skip == 0:
                yield TreeLine(key, depth, opened if self._nodes[key.node].children else None)
            if opened:
                yield from self._walk(key.node, depth + 1, max(0, skip - 1))
            skip = 0
