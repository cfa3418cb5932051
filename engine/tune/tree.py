"""The search tree as people and the database see it: stable node names, rows and events.

A node's name is a digest of the context, the kernel and the knob values fixed so far, so that a re-run and a
followed database speak of the same nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.events import NodeOpened, NodeVisited
from engine.search import Node, Proposal
from engine.store import NodeRecord, node_key
from engine.tune.settings import Objective
from engine.tune.workbench import Workbench
from engine.vocabulary import Option

ACF_DIGITS = 12


def _label(node: Node) -> str:
    """The option's text; of the sha256 of controls as much as tells files apart."""
    named = tuple((name, str(value)[:ACF_DIGITS] if name == "ACF" else value) for name, value in node.option.knobs)
    return str(Option(named)) if named else ""


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
        self._names: dict[int, str] = {}

    def name(self, node: Node) -> str:
        known = self._names.get(node.id)
        if known is None:
            knobs = {name: value for option in node.path for name, value in option.knobs}
            known = self._names[node.id] = node_key(self._context, self._tree, knobs)
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
        name = self.name(node)
        if name in self._opened:
            return
        self._opened.add(name)
        self._bench.tell(
            NodeOpened,
            node=name,
            parent="" if node.parent is None else self.name(node.parent),
            kernel=self._kernel,
            label=_label(node),
            prior=node.prior,
            depth=node.depth,
        )

    def _record(self, node: Node) -> NodeRecord:
        return NodeRecord(
            node=self.name(node),
            parent="" if node.parent is None else self.name(node.parent),
            kernel_key=self._kernel,
            knobs={name: value for option in node.path for name, value in option.knobs},
            label=_label(node),
            depth=node.depth,
            prior=node.prior,
            visits=node.visits,
            best_us=_us(node.best_reward) if self._timed else None,
            state=node.state,
            is_leaf=node.is_leaf,
        )
