"""A place in a graph where a structural fork is asked, and what every rule owes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from engine.grouping.body import write_body
from engine.grouping.partition import Facts, Partition
from engine.ir.structural_key import structural_key

FUSED = "fused"
APART = "apart"
MERGED = "merged"


@dataclass(frozen=True, slots=True)
class Site:
    """`ops` is the chain that the question is about; equal `context` means that the answer of the first site holds."""

    ops: frozenset[int]
    context: str


class Rule(Protocol):
    """One kind of structural fork."""

    @property
    def knob(self) -> str:
        """Names the questions: knob_0, knob_1, one per distinct context."""
        ...

    @property
    def answers(self) -> tuple[str, str]:
        """The two answers in canonical order; the one that isn't "apart" takes the partition of `fused`."""
        ...

    def sites(self, start: Partition) -> tuple[Site, ...]:
        """Where the rule may ask, in the graph's order; `start` has every pointwise chain as one atom."""
        ...

    def fused(self, partition: Partition, site: Site) -> Partition | None:
        """The partition with the site fused, or None when there is nothing to ask (already fused, or not legal)."""
        ...

    def apart(self, partition: Partition, site: Site) -> Partition:
        """The partition once the site is decided apart; it may rule out that a later rule fuses the site after all."""
        ...


def context_of(facts: Facts, ops: frozenset[int]) -> str:
    """Fingerprint of a set of ops and of what leaves it, independent of where in the graph it stands."""
    return structural_key("", write_body(facts, ops).graph)
