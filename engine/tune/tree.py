"""The search tree as people and the database see it: stable node names, rows and events.

A node's name is a digest of the context, the kernel and the knob values fixed so far, so that a re-run and a
followed database speak of the same nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.events import NodeOpened, NodeVisited
from engine.search import Node, Proposal
from engine.store import NodeRecord, node_key
from engine.tune.settings import Objective
from engine.tune.workbench import Workbench
from engine.vocabulary import KnobValue, Option

ACF_DIGITS = 12


def _label(node: Node) -> str:
    """The option's text; of the sha256 of controls as much as tells files apart."""
    named = tuple((name, str(value)[:ACF_DIGITS] if name == "ACF" else value) for name, value in node.option.knobs)
    return str(Option(named)) if named else ""


@dataclass(frozen=True, slots=True)
class _Place:
    """What of a node never changes; `knobs` are all that its path fixes."""

    name: str
    parent: str
    knobs: Mapping[str, KnobValue]
    label: str


def _us(reward: float | None) -> float | None:
    return 1.0 / reward if reward else None


class TreeReporter:
    """Reports one search's nodes. `tree` is the structural key of the kernel, or the outer tree's name."""

    def __init__(self, bench: Workbench, tree: str, *, outer: bool = False) -> None:
        self._bench = bench
        self._tree = tree
        self._kernel = "" if outer else tree
        counted = bench.settings.objective in (Objective.REGISTERS, Objective.SPILLS)
        self._timed = outer or not counted
        self._context = bench.device.context.key
        self._opened: set[str] = set()
        self._places: dict[int, _Place] = {}

    def name(self, node: Node) -> str:
        return self._place(node).name

    def _place(self, node: Node) -> _Place:
        known = self._places.get(node.id)
        if known is None:
            knobs = {name: value for option in node.path for name, value in option.knobs}
            name = node_key(self._context, self._tree, knobs)
            parent = "" if node.parent is None else self.name(node.parent)
            known = self._places[node.id] = _Place(name, parent, knobs, _label(node))
        return known

    def leaf_id(self, proposal: Proposal) -> str:
        return self.name(proposal.node)

    def asked(self, proposal: Proposal) -> None:
        """Open the nodes on the proposal's path and their siblings, so that what was passed over is visible."""
        for node in proposal.node.lineage():
            siblings = node.parent.children if node.parent is not None else (node,)
            if self.name(node) in self._opened:
                continue
            for sibling in siblings:
                self._open(sibling)

    def told(self, proposal: Proposal) -> tuple[NodeRecord, ...]:
        """Rows of the nodes whose numbers the last tell changed, root first."""
        return tuple(self._record(node) for node in proposal.node.lineage())

    def leaf_record(self, proposal: Proposal) -> NodeRecord:
        return self._record(proposal.node)

    def emit_visits(self, records: Sequence[NodeRecord]) -> None:
        for record in records:
            self._bench.tell(
                NodeVisited, node=record.node, visits=record.visits, best_us=record.best_us, state=record.state
            )

    def _open(self, node: Node) -> None:
        place = self._place(node)
        if place.name in self._opened:
            return
        self._opened.add(place.name)
        self._bench.tell(
            NodeOpened,
            node=place.name,
            parent=place.parent,
            kernel=self._kernel,
            label=place.label,
            prior=node.prior,
            depth=node.depth,
        )

    def _record(self, node: Node) -> NodeRecord:
        place = self._place(node)
        return NodeRecord(
            node=place.name,
            parent=place.parent,
            kernel_key=self._kernel,
            knobs=place.knobs,
            label=place.label,
            depth=node.depth,
            prior=node.prior,
            visits=node.visits,
            best_us=_us(node.best_reward) if self._timed else None,
            state=node.state,
            is_leaf=node.is_leaf,
        )
