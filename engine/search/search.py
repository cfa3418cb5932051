"""Which candidate to try next: Monte Carlo tree search over a lazily built space, by ask and tell.

A descent follows `puct` from the root to a full assignment. Rewards back up as a maximum, because a fork is as good
as its best candidate. Proposals in flight count as visits without reward, so a window of several can be outstanding
and still spread. The sequence of asks and tells decides everything: there is no clock and no randomness here.
One class serves both levels, for it knows neither kernels nor times.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.search.action_selection import puct
from engine.search.patience import StopReason, may_propose, stop_reason
from engine.search.space import Path, Scorer, Space, canonical_order
from engine.search.tree import ROOT, Kind, Node, Tree
from engine.vocabulary import KnobValue, Option

UNSCORED = -1
"""How often the scorer was called outdated before it was asked: it wasn't."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A candidate to try. `number` counts the proposals of one search from 1."""

    number: int
    node: Node
    path: Path

    @property
    def knobs(self) -> dict[str, KnobValue]:
        """Every knob that the path fixes; of a knob fixed twice, the last value."""
        return {name: value for option in self.path for name, value in option.knobs}


@dataclass(frozen=True, slots=True)
class Best:
    proposal: Proposal
    reward: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """The terms of a child's score as the next descent would see them: score = q + u.

    `visits` and `parent_visits` include the proposals in flight; `u` is the exploration term that holds the prior.
    """

    q: float
    u: float
    prior: float
    visits: int
    parent_visits: int

    @property
    def score(self) -> float:
        return self.q + self.u


class Search:
    """Ask for candidates, tell what became of them, until `stopped` says why there are no more.

    `patience` (>= 1) is how many answers without a new best end the search; `limit` caps the answered candidates;
    `forbidden` tells whether nothing below a path may be proposed, and is asked again on each descent, so that a
    ban counts at once. Raises ValueError if a number makes no sense. Not thread-safe: one thread owns a search.
    """

    def __init__(
        self,
        space: Space,
        scorer: Scorer,
        *,
        patience: int = 50,
        exploration: float = math.sqrt(2),
        limit: int | None = None,
        forbidden: Callable[[Path], bool] | None = None,
    ) -> None:
        if patience < 1:
            raise ValueError(f"patience must be at least 1, not {patience}")
        if not (math.isfinite(exploration) and exploration >= 0):
            raise ValueError(f"exploration must be finite and not negative, not {exploration}")
        if limit is not None and limit < 0:
            raise ValueError(f"limit must not be negative, not {limit}")
        self._space = space
        self._scorer = scorer
        self._patience = patience
        self._exploration = exploration
        self._limit = limit
        self._forbidden = forbidden
        self._tree = Tree()
        self._scoring = 0
        self._pending: dict[int, Proposal] = {}
        self._assignments: dict[str, int] = {}
        self._best: Best | None = None
        self._proposed = 0
        self._decided = 0
        self._dead_ends = 0
        self._duplicates = 0
        self._since_best = 0
        self._failures_before_success = 0

    # What the caller does.

    def ask(self) -> Proposal | None:
        """The next candidate, or None if nothing can be proposed now.

        None while proposals are in flight means: tell their outcomes first. None with nothing in flight means that
        the search has stopped. Dead ends and duplicates met on the way leave the tree.
        """
        while not self._tree.closed[ROOT] and self._may_propose():
            node = self._descend()
            if node is not None and not self._leaves_tree(node):
                return self._propose(node)
        return None

    def ask_for(self, path: Path) -> Proposal | None:
        """The candidate at the end of `path`, whatever the scores say of it.

        None if it was proposed before, if the space doesn't offer it, or if nothing may be proposed now.
        """
        node = self._follow(path) if self._may_propose() else None
        return None if node is None or self._leaves_tree(node) else self._propose(node)

    def ask_with(self, knobs: Mapping[str, KnobValue]) -> Proposal | None:
        """The candidate whose values are all among `knobs`, which may hold more; None as for `ask_for`."""
        path: Path = ()
        while (fork := self._space.fork(path)) is not None:
            fits = [
                option for option in fork.options if all(is_value(knobs.get(n), value) for n, value in option.knobs)
            ]
            if not fits:
                return None
            path = (*path, fits[0])
        return self.ask_for(path)

    def tell(self, proposal: Proposal, reward: float | None) -> bool:
        """Answer a proposal in flight: a reward (finite, > 0, higher is better), or None if it failed.

        Returns whether it is a new best. Raises ValueError on a bad reward or a proposal that is not in flight.
        """
        if reward is not None and not (math.isfinite(reward) and reward > 0):
            raise ValueError(f"a reward must be finite and above 0, not {reward}; a failed candidate has None")
        self._land(proposal)
        self._tree.back_up(proposal.node.id, reward or 0.0)
        self._decided += 1
        if reward is None and self._best is None:
            self._failures_before_success += 1
        if reward is None or (self._best is not None and reward <= self._best.reward):
            self._since_best += 1
            return False
        self._best = Best(proposal, reward)
        self._since_best = 0
        return True

    def skip(self, proposal: Proposal) -> None:
        """Resolve a proposal that nobody can answer: it leaves the tree and counts toward nothing."""
        self._land(proposal)

    def withdraw(self, proposal: Proposal) -> None:
        """Give a proposal back unanswered, as if it had not been asked for: it may be proposed again."""
        self._land(proposal)
        self._tree.reopen(proposal.node.id)
        del self._assignments[_assignment(proposal.path)]

    def score_again(self) -> None:
        """Say that the scorer has learned: each fork asks it anew when a descent next comes through.

        A search that is never told so keeps the priors of the first answer, and its path depends on tells alone.
        """
        self._scoring += 1

    def ahead(self, most: int) -> int:
        """How many candidates to have in flight, of `most` that the caller can serve: here all of them."""
        return most

    # What the caller may know.

    @property
    def stopped(self) -> StopReason | None:
        """Why the search is over; None while something is in flight or may still be proposed."""
        return stop_reason(
            exhausted=self._tree.closed[ROOT],
            since_best=self._since_best,
            decided=self._decided,
            in_flight=len(self._pending),
            patience=self._patience,
            limit=self._limit,
        )

    @property
    def best(self) -> Best | None:
        return self._best

    @property
    def patience(self) -> int:
        return self._patience

    @patience.setter
    def patience(self, patience: int) -> None:
        """Count by another patience from now on. Raises ValueError below 1."""
        if patience < 1:
            raise ValueError(f"patience must be at least 1, not {patience}")
        self._patience = patience

    @property
    def decided(self) -> int:
        """Answered candidates, failed ones included."""
        return self._decided

    @property
    def dead_ends(self) -> int:
        return self._dead_ends

    @property
    def duplicates(self) -> int:
        """Paths that led to an assignment which another path had proposed."""
        return self._duplicates

    @property
    def since_best(self) -> int:
        """Answered candidates and dead ends since the last new best (or since the start)."""
        return self._since_best

    @property
    def failures_before_success(self) -> int:
        """How many candidates failed before one succeeded; while `best` is None, all that were answered."""
        return self._failures_before_success

    @property
    def in_flight(self) -> tuple[Proposal, ...]:
        """Proposals without an answer, in the order they were asked for."""
        return tuple(self._pending.values())

    @property
    def root(self) -> Node:
        return Node(self._tree, ROOT)

    @property
    def node_count(self) -> int:
        """Nodes so far; `node(i)` is each of them for i below this count, and new ones come at the end."""
        return len(self._tree)

    def node(self, id: int) -> Node:
        return Node(self._tree, range(len(self._tree))[id])

    def explain(self, node: Node) -> Explanation:
        """Why a descent would take this node or not, against its siblings. The root has no score: q = u = 0."""
        tree, parent = self._tree, node.parent
        visits = tree.visits[node.id] + tree.in_flight[node.id]
        if parent is None:
            return Explanation(0.0, 0.0, node.prior, visits, 0)
        parent_visits = tree.visits[parent.id] + tree.in_flight[parent.id]
        q = tree.rewards[node.id] / self._best.reward if self._best else 0.0
        return Explanation(
            q, puct(0.0, node.prior, parent_visits, visits, self._exploration), node.prior, visits, parent_visits
        )

    # One descent.

    def _may_propose(self) -> bool:
        return may_propose(
            since_best=self._since_best,
            decided=self._decided,
            in_flight=len(self._pending),
            patience=self._patience,
            limit=self._limit,
        )

    def _propose(self, node: int) -> Proposal:
        self._proposed += 1
        proposal = Proposal(self._proposed, Node(self._tree, node), self._tree.path(node))
        self._pending[self._proposed] = proposal
        self._tree.close(node)
        self._tree.take_off(node)
        return proposal

    def _follow(self, path: Path) -> int | None:
        """The open leaf that the options of `path` lead to; None if there is none."""
        tree, node = self._tree, ROOT
        for depth in range(len(path) + 1):
            if tree.closed[node] or (self._forbidden is not None and self._forbidden(path[:depth])):
                return None
            if tree.kinds[node] is Kind.UNEXPANDED:
                self._expand(node, path[:depth], scored=False)
            if depth < len(path):
                taken = [child for child in tree.children[node] if tree.options[child] == path[depth]]
                if not taken:
                    return None
                node = taken[0]
        return node if tree.kinds[node] is Kind.LEAF else None

    def _descend(self) -> int | None:
        """Walk from the root to a leaf or dead end, expanding on the way; None if the node it came to is forbidden."""
        node = ROOT
        path: Path = ()
        while True:
            if self._forbidden is not None and self._forbidden(path):
                self._tree.close(node)
                return None
            if self._tree.kinds[node] is Kind.UNEXPANDED:
                self._expand(node, path)
            if self._tree.kinds[node] is not Kind.FORK:
                return node
            if self._tree.scored[node] != self._scoring:
                options = [self._tree.options[child] for child in self._tree.children[node]]
                self._tree.score_again(node, self._speeds(path, options, self._tree.forks[node]), self._scoring)
            node = self._select(node)
            path = (*path, self._tree.options[node])

    def _expand(self, node: int, path: Path, *, scored: bool = True) -> None:
        """Give the node its children. Without scores the next descent that comes through asks for them."""
        fork = self._space.fork(path)
        if fork is None:
            self._tree.kinds[node] = Kind.LEAF
            return
        if not fork.options:
            self._tree.kinds[node] = Kind.DEAD_END
            return
        options = sorted(fork.options, key=canonical_order)
        if scored:
            self._tree.expand(node, fork.name, options, self._speeds(path, options, fork.name), self._scoring)
        else:
            self._tree.expand(node, fork.name, options, [math.nan] * len(options), UNSCORED)

    def _speeds(self, path: Path, options: Sequence[Option], fork: str) -> list[float]:
        speeds = self._scorer(path, options)
        if len(speeds) != len(options):
            raise ValueError(f"the scorer answered {len(speeds)} speeds for {len(options)} options of {fork}")
        return [float(speed) for speed in speeds]

    def _select(self, node: int) -> int:
        """The open child with the highest score; of equal ones the first in predicted, then in canonical order."""
        tree, exploration = self._tree, self._exploration
        visits, in_flight, rewards, priors = tree.visits, tree.in_flight, tree.rewards, tree.priors
        siblings = tree.open_children[node]
        scale = 1.0 / self._best.reward if self._best else 0.0
        parent_visits = visits[node] + in_flight[node]
        chosen, highest = siblings[0], -math.inf
        for child in siblings:
            n = visits[child] + in_flight[child]
            score = puct(rewards[child] * scale, priors[child], parent_visits, n, exploration)
            if score > highest:
                chosen, highest = child, score
        return chosen

    def _leaves_tree(self, node: int) -> bool:
        """Take a dead end or a duplicate out of the tree; a new full assignment is remembered and stays."""
        if self._tree.kinds[node] is Kind.DEAD_END:
            self._tree.close(node)
            self._tree.back_up(node, 0.0)
            self._dead_ends += 1
            self._since_best += 1
            return True
        if self._assignments.setdefault(_assignment(self._tree.path(node)), node) != node:
            self._tree.close(node)
            self._duplicates += 1
            return True
        return False

    def _land(self, proposal: Proposal) -> None:
        if self._pending.get(proposal.number) is not proposal:
            raise ValueError(f"proposal {proposal.number} is not in flight: it was answered, or another search made it")
        del self._pending[proposal.number]
        self._tree.land(proposal.node.id)


def is_value(given: KnobValue | None, value: KnobValue) -> bool:
    """Whether a knob's given value is this one; 1 is not True."""
    return type(given) is type(value) and given == value


def _assignment(path: Path) -> str:
    """Canonical text of what a path fixes: equal for two paths to the same assignment."""
    knobs = sorted((knob for option in path for knob in option.knobs), key=lambda knob: knob[0])
    return json.dumps(knobs, separators=(",", ":"))
