"""Structural forks that change the graph itself: what every rewrite owes, and the questions that come before the rules.

Rewrites are asked one after the other, each on the graph that the answers to the ones before it give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.ir.graph import Graph
from engine.vocabulary import Fork, Option


@dataclass(frozen=True, slots=True)
class RewriteSite:
    """A place that may be rewritten: `at` is the op by which the rewrite finds it again.

    Equal `context` means that the answer of the first site holds. `answers` are in canonical order, the first one
    leaves the graph as it is.
    """

    at: int
    context: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A site with an answer that changes the graph."""

    site: RewriteSite
    answer: str


class Rewrite(Protocol):
    """One kind of rewrite."""

    @property
    def knob(self) -> str:
        """Names the questions: knob_0, knob_1, one per distinct context."""
        ...

    def sites(self, graph: Graph) -> tuple[RewriteSite, ...]:
        """Where the rewrite is legal, in the graph's order; no two change the same op."""
        ...

    def rewritten(self, graph: Graph, chosen: Sequence[Chosen]) -> Graph:
        """The graph with all chosen sites rewritten: the same inputs, outputs of the same shapes and dtypes."""
        ...


@dataclass(frozen=True, slots=True)
class Rewriting:
    """After some answers: the graph so far, the rewrites to come (the first one's questions are open), its sites, and
    the answers to the first of its distinct contexts, in order."""

    graph: Graph
    rewrites: tuple[Rewrite, ...]
    sites: tuple[RewriteSite, ...] = ()
    answers: tuple[str, ...] = ()

    @classmethod
    def begun(cls, graph: Graph, rewrites: tuple[Rewrite, ...]) -> Rewriting:
        """At the first question; no rewrites are left where there is none."""
        for number, rewrite in enumerate(rewrites):
            sites = rewrite.sites(graph)
            if sites:
                return cls(graph, rewrites[number:], sites)
        return cls(graph, ())

    @property
    def fork(self) -> Fork | None:
        """The open question, or None when the graph is final."""
        if not self.rewrites:
            return None
        asked = self._distinct()[len(self.answers)]
        knob = f"{self.rewrites[0].knob}_{len(self.answers)}"
        return Fork(knob, tuple(Option(((knob, answer),)) for answer in asked.answers))

    @property
    def asked(self) -> tuple[str, str]:
        """The rewrite's knob and the context of the open question."""
        return self.rewrites[0].knob, self._distinct()[len(self.answers)].context

    def answered(self, answer: str) -> Rewriting:
        """At the next question."""
        answers = (*self.answers, answer)
        distinct = self._distinct()
        if len(answers) < len(distinct):
            return Rewriting(self.graph, self.rewrites, self.sites, answers)
        decided = {site.context: value for site, value in zip(distinct, answers, strict=True)}
        chosen = [
            Chosen(site, decided[site.context]) for site in self.sites if decided[site.context] != site.answers[0]
        ]
        graph = self.rewrites[0].rewritten(self.graph, chosen) if chosen else self.graph
        return Rewriting.begun(graph, self.rewrites[1:])

    def _distinct(self) -> tuple[RewriteSite, ...]:
        """The first site of each context, in order."""
        first: dict[str, RewriteSite] = {}
        for site in self.sites:
            first.setdefault(site.context, site)
        return tuple(first.values())
