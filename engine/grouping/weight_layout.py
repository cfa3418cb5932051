"""Rewrite: a matmul reads its weight as it is stored, or a copy with rows and columns turned, prepared once.

Which of the two a main loop loads faster depends on tile sizes and swizzles; a copy made before the first launch
costs memory and no time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.grouping.partition import Facts
from engine.grouping.prepared import fixed_values
from engine.grouping.rebuilding import Replacement, rebuilt
from engine.grouping.rewriting import Chosen, RewriteSite
from engine.grouping.site import context_of
from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph, Op

STORED = "stored"
TURNED = "turned"


@dataclass(frozen=True, slots=True)
class WeightLayout:
    knob: str = "WEIGHT_LAYOUT"

    def sites(self, graph: Graph) -> tuple[RewriteSite, ...]:
        if not graph.weights:
            return ()
        facts, fixed = Facts.of(graph), fixed_values(graph)
        return tuple(
            RewriteSite(index, context_of(facts, frozenset((index,))), (STORED, TURNED))
            for index, op in enumerate(graph.ops)
            if op.kind == "matmul" and index not in fixed and op.inputs[1] in fixed and _turns(graph, op)
        )

    def rewritten(self, graph: Graph, chosen: Sequence[Chosen]) -> Graph:
        return rebuilt(graph, {c.site.at: _turned(graph, c.site.at) for c in chosen})


def _turns(graph: Graph, op: Op) -> bool:
    """Whether the right operand is a matrix, or a batch of them, that lies row by row or column by column."""
    spec = graph.ops[op.inputs[1]].out
    return 1 in spec.strides[-2:] and all(extent > 1 for extent in spec.shape[-2:])


def _turned(graph: Graph, index: int) -> Replacement:
    """The matmul of a contiguous copy in the other order: rows and columns are exchanged, copied, and read back."""
    op = graph.ops[index]
    spec = graph.ops[op.inputs[1]].out
    lies_in_rows = spec.strides[-1] == 1

    def write(b: GraphBuilder, where: Mapping[int, int]) -> int:
        right = where[op.inputs[1]]
        if lies_in_rows:
            right = _exchanged(b, right)
        right = b.add("copy", right)
        if lies_in_rows:
            right = _exchanged(b, right)
        return b.append(Op(op.kind, (where[op.inputs[0]], right), op.out, op.attributes))

    return write


def _exchanged(b: GraphBuilder, index: int) -> int:
    """A view with the last two axes exchanged."""
    spec = b.spec(index)
    shape, strides = ((*axes[:-2], axes[-1], axes[-2]) for axes in (spec.shape, spec.strides))
    return b.view(index, shape, strides)
