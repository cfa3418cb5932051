"""The search tree as data: parallel lists indexed by node, and the read-only view of one node.

Siblings get consecutive indices, in canonical order, when their parent is expanded. A node is closed when nothing
below it can be proposed: its leaves are all in flight, answered or removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from engine.events import NodeState
from engine.search.action_selection import normalized_priors, preference
from engine.search.space import Path
from engine.vocabulary import Option

ROOT = 0
NO_PARENT = -1
NO_OPTION = Option(())


class Kind(Enum):
    """What is known of a node's place: nothing yet, a fork with options, a fork without, a full assignment."""

    UNEXPANDED = 0
    FORK = 1
    DEAD_END = 2
    LEAF = 3


class Tree:
    """Every field is a list with one entry a node. `open_children` runs from the fastest predicted to the slowest."""

    __slots__ = (
        *("options", "parents", "children", "open_children", "forks", "kinds", "closed"),
        *("visits", "in_flight", "rewards", "priors", "ranks", "scored"),
    )

    def __init__(self) -> None:
        self.options: list[Option] = []
        self.parents: list[int] = []
        self.children: list[range] = []
        self.open_children: list[list[int]] = []
        self.forks: list[str] = []
        self.kinds: list[Kind] = []
        self.closed: list[bool] = []
        self.visits: list[int] = []
        self.in_flight: list[int] = []
        self.rewards: list[float] = []
        self.priors: list[float] = []
        self.ranks: list[int] = []
        self.scored: list[int] = []
        self._append(NO_PARENT, NO_OPTION, 1.0, 0)

    def __len__(self) -> int:
        return len(self.options)

    def _append(self, parent: int, option: Option, prior: float, rank: int) -> None:
        self.options.append(option)
        self.parents.append(parent)
        self.children.append(range(0))
        self.open_children.append([])
        self.forks.append("")
        self.kinds.append(Kind.UNEXPANDED)
        self.closed.append(False)
        self.visits.append(0)
        self.in_flight.append(0)
        self.rewards.append(0.0)
        self.priors.append(prior)
        self.ranks.append(rank)
        self.scored.append(0)

    def expand(
        self, node: int, fork: str, options: Sequence[Option], speeds: Sequence[float], scoring: int = 0
    ) -> None:
        """Give `node` its children: `options` in canonical order with their predicted speeds (see Scorer).

        `scoring` counts how often the scorer's answers were called outdated before.
        """
        order = preference(speeds)
        ranks = {position: rank for rank, position in enumerate(order)}
        first = len(self)
        for position, (option, prior) in enumerate(zip(options, normalized_priors(speeds), strict=True)):
            self._append(node, option, prior, ranks[position])
        self.kinds[node] = Kind.FORK
        self.scored[node] = scoring
        self.forks[node] = fork
        self.children[node] = range(first, first + len(options))
        self.open_children[node] = [first + position for position in order]

    def score_again(self, node: int, speeds: Sequence[float], scoring: int) -> None:
        """Replace the priors and ranks of the children of `node`; visits, rewards and what is closed stay."""
        children = self.children[node]
        for position, prior in enumerate(normalized_priors(speeds)):
            self.priors[children[position]] = prior
        for rank, position in enumerate(preference(speeds)):
            self.ranks[children[position]] = rank
        self.open_children[node].sort(key=self.ranks.__getitem__)
        self.scored[node] = scoring

    def lineage(self, node: int) -> list[int]:
        """The node, its parent, and so on up to the root."""
        nodes = []
        while node != NO_PARENT:
            nodes.append(node)
            node = self.parents[node]
        return nodes

    def path(self, node: int) -> Path:
        return tuple(self.options[n] for n in reversed(self.lineage(node)[:-1]))

    def close(self, node: int) -> None:
        """Take a node out of the descent, and every ancestor that has nothing open left."""
        while not self.closed[node]:
            self.closed[node] = True
            parent = self.parents[node]
            if parent == NO_PARENT:
                return
            siblings = self.open_children[parent]
            siblings.remove(node)
            if siblings:
                return
            node = parent

    def reopen(self, node: int) -> None:
        """Put a closed node back into the descent, and the ancestors that closed with it."""
        while self.closed[node]:
            self.closed[node] = False
            parent = self.parents[node]
            if parent == NO_PARENT:
                return
            self.open_children[parent] = sorted([*self.open_children[parent], node], key=self.ranks.__getitem__)
            node = parent

    def take_off(self, leaf: int) -> None:
        """Count a proposal in flight at the leaf and above it: the virtual loss."""
        for node in self.lineage(leaf):
            self.in_flight[node] += 1

    def land(self, leaf: int) -> None:
        for node in self.lineage(leaf):
            self.in_flight[node] -= 1

    def back_up(self, leaf: int, reward: float) -> None:
        """Count a visit at the leaf and above it, and keep the best reward (0 = failed)."""
        for node in self.lineage(leaf):
            self.visits[node] += 1
            if reward > self.rewards[node]:
                self.rewards[node] = reward

    def state(self, node: int) -> NodeState:
        """A leaf is what its candidate is; a fork is open, waiting for what is in flight, or exhausted."""
        if not self.closed[node]:
            return NodeState.OPEN
        if self.in_flight[node]:
            return NodeState.RUNNING
        if self.kinds[node] is Kind.LEAF and self.visits[node]:
            return NodeState.MEASURED if self.rewards[node] > 0 else NodeState.FAILED
        return NodeState.EXHAUSTED


@dataclass(frozen=True, slots=True)
class Node:
    """A read-only view of one node; it always shows the tree as it is now. `id` counts the nodes, from the root's 0."""

    _tree: Tree
    id: int

    @property
    def path(self) -> Path:
        """The options from the root to here."""
        return self._tree.path(self.id)

    @property
    def option(self) -> Option:
        """The option that leads from the parent to here; the root has one without knobs."""
        return self._tree.options[self.id]

    @property
    def fork(self) -> str:
        """Name of the fork asked here; empty before it was asked, at a leaf and at a dead end."""
        return self._tree.forks[self.id]

    @property
    def parent(self) -> Node | None:
        parent = self._tree.parents[self.id]
        return None if parent == NO_PARENT else Node(self._tree, parent)

    @property
    def children(self) -> tuple[Node, ...]:
        """In canonical order; empty before the fork was asked."""
        return tuple(Node(self._tree, child) for child in self._tree.children[self.id])

    def lineage(self) -> tuple[Node, ...]:
        """The root, and so on down to this node itself."""
        return tuple(Node(self._tree, node) for node in reversed(self._tree.lineage(self.id)))

    @property
    def depth(self) -> int:
        return len(self._tree.lineage(self.id)) - 1

    @property
    def visits(self) -> int:
        """Answered candidates and dead ends below here, this node included."""
        return self._tree.visits[self.id]

    @property
    def best_reward(self) -> float | None:
        return self._tree.rewards[self.id] or None

    @property
    def prior(self) -> float:
        """Predicted speed within the sibling set; the best sibling has 1."""
        return self._tree.priors[self.id]

    @property
    def rank(self) -> int:
        """Place within the sibling set by predicted speed, from 0."""
        return self._tree.ranks[self.id]

    @property
    def in_flight(self) -> int:
        """Proposals below here that have no answer yet."""
        return self._tree.in_flight[self.id]

    @property
    def is_leaf(self) -> bool:
        """Whether everything is decided here."""
        return self._tree.kinds[self.id] is Kind.LEAF

    @property
    def is_dead_end(self) -> bool:
        return self._tree.kinds[self.id] is Kind.DEAD_END

    @property
    def exhausted(self) -> bool:
        """Whether nothing below here, this node included, will ever be proposed or answered again."""
        return self._tree.closed[self.id] and not self._tree.in_flight[self.id]

    @property
    def state(self) -> NodeState:
        return self._tree.state(self.id)
