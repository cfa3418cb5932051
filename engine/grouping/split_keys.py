"""Rewrite: attention of few queries over slices of its keys, and a sum of the slices weighed by their softmax totals.

One token asks for so few programs that most of the chip idles while each walks all keys. Heads that share keys are
rows of one tile here, which reads those keys once, and slices of the keys are a batch. A slice gives its weighted
values, its largest logit and its sum of powers; what joins them is pointwise (as Dao's flash decoding has it):

    result = sum(w * values) / sum(w),  w = total * exp(peak - highest peak)

Only attention without a mask is split, so that every slice has visible keys and a finite peak.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

from engine.grouping.partition import Facts
from engine.grouping.rebuilding import Replacement, rebuilt
from engine.grouping.rewriting import Chosen, RewriteSite
from engine.grouping.site import context_of
from engine.grouping.split_k import PROCESSORS
from engine.ir.attention import AttentionChain, attention_chain, unfit_because
from engine.ir.attention_mask import read_masking
from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph, TensorSpec, contiguous_strides
from engine.ir.views import reshaped

WHOLE = "whole"
SLICES = {"quarters": 4, "eighths": 8, "sixteenths": 16, "thirtyseconds": 32}
MOST_ROWS = 16
FEWEST_KEYS = 1024
STEP = 64
"""A slice holds whole steps of a loop over keys."""


@dataclass(frozen=True, slots=True)
class SplitKeys:
    knob: str = "SPLIT_KEYS"

    def sites(self, graph: Graph) -> tuple[RewriteSite, ...]:
        facts = Facts.of(graph)
        found = []
        for index in range(len(graph.ops)):
            folded = _folded(graph, index)
            if folded is None:
                continue
            answers = (WHOLE, *(name for name, slices in SLICES.items() if folded.takes(slices)))
            if len(answers) > 1:
                found.append(RewriteSite(index, context_of(facts, folded.chain.ops), answers))
        return tuple(found)

    def rewritten(self, graph: Graph, chosen: Sequence[Chosen]) -> Graph:
        replacements: dict[int, Replacement] = {}
        for choice in chosen:
            folded = _folded(graph, choice.site.at)
            assert folded is not None
            replacements[choice.site.at] = _Sliced(graph, folded, SLICES[choice.answer]).write
        return rebuilt(graph, replacements)


@dataclass(frozen=True, slots=True)
class _Folded:
    """An attention whose heads that share keys are rows: `query` [*outer, rows, depth], `outer` batch axes, the keys'
    and values' specs without the axes that became rows."""

    chain: AttentionChain
    outer: tuple[int, ...]
    rows: int
    keys: int
    query: TensorSpec
    key: TensorSpec
    value: TensorSpec

    def takes(self, slices: int) -> bool:
        """Whether so many slices are whole steps, and about as many programs as the chip runs at once."""
        programs = prod(self.outer) * slices
        return self.keys % (slices * STEP) == 0 and PROCESSORS <= 4 * programs <= 8 * PROCESSORS


def _folded(graph: Graph, index: int) -> _Folded | None:
    """The attention that ends in op `index`, if its keys may be split."""
    chain = attention_chain(graph, index)
    if chain is None or unfit_because(graph, chain) is not None or not read_masking(graph, chain).plain:
        return None
    if any(i not in chain.path | {chain.scores} and graph.ops[i].kind != "constant" for i in _read(graph, chain)):
        return None
    scores, values = graph.ops[chain.scores], graph.ops[chain.values]
    query, key = (graph.ops[i].out for i in scores.inputs)
    value = graph.ops[values.inputs[1]].out
    batch = scores.out.shape[:-2]
    if len(batch) == 0 or any(spec.shape[:-2] != batch for spec in (query, key, value)):
        return None
    shared = len(batch)
    while shared and (batch[shared - 1] == 1 or key.strides[shared - 1] == value.strides[shared - 1] == 0):
        shared -= 1
    for inner in (shared, len(batch)):
        rows = prod(batch[inner:]) * query.shape[-2]
        folded = reshaped(query, (*batch[:inner], rows, query.shape[-1]))
        if rows <= MOST_ROWS and key.shape[-1] >= FEWEST_KEYS and folded is not None:
            kept = (_without(spec, inner) for spec in (key, value))
            return _Folded(chain, batch[:inner], rows, key.shape[-1], folded, *kept)
    return None


def _read(graph: Graph, chain: AttentionChain) -> list[int]:
    """What the ops between scores and logits read."""
    return [i for index in chain.path for i in graph.ops[index].inputs]


def _without(spec: TensorSpec, inner: int) -> TensorSpec:
    """The matrices of a batch of which only the first `inner` axes move."""
    shape, strides = spec.shape, spec.strides
    return TensorSpec((*shape[:inner], *shape[-2:]), spec.dtype, (*strides[:inner], *strides[-2:]), spec.offset)


@dataclass(frozen=True, slots=True)
class _Sliced:
    graph: Graph
    folded: _Folded
    slices: int

    def write(self, b: GraphBuilder, where: Mapping[int, int]) -> int:
        """[*outer, slices, rows, width] partial results in float32, then what joins them in the old op's shape."""
        graph, folded = self.graph, self.folded
        scores, values = graph.ops[folded.chain.scores], graph.ops[folded.chain.values]
        part = folded.keys // self.slices
        query, key, value = self._operands(b, where, part)
        tf32 = bool(scores.attribute("allow_tf32"))
        logits = b.add("matmul", query, key, dtype=scores.out.dtype, allow_tf32=tf32)
        new = {folded.chain.scores: logits}
        for index in sorted(folded.chain.path):
            op = graph.ops[index]
            inputs = (new[i] if i in new else where[i] for i in op.inputs)
            new[index] = b.add(op.kind, *inputs, dtype=op.out.dtype)
        logits = new[folded.chain.logits]
        axes = (len(b.spec(logits).shape) - 1,)
        peak = b.add("amax", logits, axes=axes, dtype="float32")
        powers = b.add("exp", b.add("sub", logits, peak, dtype="float32"), dtype="float32")
        total = b.add("sum", powers, axes=axes, dtype="float32")
        weights = b.add("div", powers, total, dtype=graph.ops[folded.chain.weights].out.dtype)
        partial = b.add("matmul", weights, value, dtype="float32", allow_tf32=bool(values.attribute("allow_tf32")))
        return self._joined(b, partial, peak, total)

    def _operands(self, b: GraphBuilder, where: Mapping[int, int], part: int) -> tuple[int, int, int]:
        folded, slices = self.folded, self.slices
        scores, values = self.graph.ops[folded.chain.scores], self.graph.ops[folded.chain.values]
        sources = (*scores.inputs, values.inputs[1])
        specs = (folded.query, folded.key, folded.value)
        steps = (0, part * folded.key.strides[-1], part * folded.value.strides[-2])
        ends = (folded.query.shape[-2:], (folded.key.shape[-2], part), (part, folded.value.shape[-1]))
        query, key, value = (
            b.view(where[source], (*folded.outer, slices, *end), (*spec.strides[:-2], step, *spec.strides[-2:]))
            for source, spec, step, end in zip(sources, specs, steps, ends, strict=True)
        )
        return query, key, value

    def _joined(self, b: GraphBuilder, partial: int, peak: int, total: int) -> int:
        shape = self.graph.ops[self.folded.chain.values].out.shape
        width = shape[-1]
        peaks = [self._slice(b, peak, 1, number) for number in range(self.slices)]
        highest = reduce(lambda left, right: b.add("maximum", left, right), peaks)
        weights = [
            b.add("mul", self._slice(b, total, 1, number), b.add("exp", b.add("sub", own, highest)))
            for number, own in enumerate(peaks)
        ]
        terms = [b.add("mul", w, self._slice(b, partial, width, number)) for number, w in enumerate(weights)]
        over, under = (reduce(lambda left, right: b.add("add", left, right), parts) for parts in (terms, weights))
        return b.add("div", over, under, dtype=self.graph.ops[self.folded.chain.values].out.dtype)

    def _slice(self, b: GraphBuilder, source: int, width: int, number: int) -> int:
        """Slice `number` of [*outer, slices, rows, width] in the old op's shape, its last axis of `width` elements."""
        folded = self.folded
        shape = (*self.graph.ops[folded.chain.values].out.shape[:-1], width)
        inner = contiguous_strides(shape)
        apart = len(folded.outer)
        strides = (*(stride * self.slices for stride in inner[:apart]), *inner[apart:])
        return b.view(source, shape, strides, number * folded.rows * width)
