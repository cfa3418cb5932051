"""Rewrite: a matmul of few output tiles as one over slices of its depth, and a sum of the slices.

Where the tiles of the result are fewer than half the processors, most of the chip idles while a few programs walk the
whole depth. Slices are a batch: more programs, each with a part of the depth, a float32 result each. Their sum is
pointwise, so that what follows the matmul (a residual, a cast) joins it by the rules that are there.

It was seen to win at 32x1024x3072 (bf16, H200): 3.2 us for eight slices and 1.3 for their sum with the residual, both
generated, against 6.4 for the whole depth in a kernel made by hand. The program that is last to arrive could sum them
up in the same kernel: made by hand, that takes 5.2 us there, and 9.1 at 512x1024x2048, where the whole depth takes 6.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from engine.grouping.partition import Facts
from engine.grouping.rebuilding import Replacement, rebuilt
from engine.grouping.rewriting import Chosen, RewriteSite
from engine.grouping.site import context_of
from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph, contiguous_strides
from engine.ir.views import reshaped

WHOLE = "whole"
SLICES = {"halves": 2, "quarters": 4, "eighths": 8}
PROCESSORS = 132
TILE = 128
FEWEST_DEPTH = 1024
STEP = 64
"""A slice holds whole steps of a main loop."""


@dataclass(frozen=True, slots=True)
class SplitK:
    knob: str = "SPLIT_K"

    def sites(self, graph: Graph) -> tuple[RewriteSite, ...]:
        facts = Facts.of(graph)
        found = []
        for index in range(len(graph.ops)):
            answers = (WHOLE, *(name for name, slices in SLICES.items() if _splits(graph, index, slices)))
            if len(answers) > 1:
                found.append(RewriteSite(index, context_of(facts, frozenset((index,))), answers))
        return tuple(found)

    def rewritten(self, graph: Graph, chosen: Sequence[Chosen]) -> Graph:
        return rebuilt(graph, {c.site.at: _sliced(graph, c.site.at, SLICES[c.answer]) for c in chosen})


def _splits(graph: Graph, index: int, slices: int) -> bool:
    op = graph.ops[index]
    if op.kind != "matmul":
        return False
    left, right = (graph.ops[i].out for i in op.inputs)
    if len(right.shape) != 2 or left.dtype == "float64":
        return False
    depth, columns = right.shape
    rows = prod(left.shape[:-1])
    tiles = ceil(rows / TILE) * ceil(columns / TILE)
    if 2 * tiles >= PROCESSORS or depth < FEWEST_DEPTH or depth % (slices * STEP):
        return False
    return reshaped(left, (rows, depth)) is not None


def _sliced(graph: Graph, index: int, slices: int) -> Replacement:
    """[slices, rows, depth / slices] times [slices, depth / slices, columns] in float32, then the sum of the slices."""
    op = graph.ops[index]
    spec, right = (graph.ops[i].out for i in op.inputs)
    (depth, columns), rows = right.shape, prod(spec.shape[:-1])
    left = reshaped(spec, (rows, depth))
    assert left is not None
    part = depth // slices

    def write(b: GraphBuilder, where: Mapping[int, int]) -> int:
        (row, step), (down, across) = left.strides, right.strides
        one = b.view(where[op.inputs[0]], (slices, rows, part), (part * step, row, step))
        other = b.view(where[op.inputs[1]], (slices, part, columns), (part * down, down, across))
        parts = b.add("matmul", one, other, dtype="float32", allow_tf32=bool(op.attribute("allow_tf32")))
        shape, strides = op.out.shape, contiguous_strides(op.out.shape)
        total = b.view(parts, shape, strides)
        for number in range(1, slices):
            last = op.out.dtype if number == slices - 1 else "float32"
            total = b.add("add", total, b.view(parts, shape, strides, number * rows * columns), dtype=last)
        return total

    return write
