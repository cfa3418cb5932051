"""Values of weights alone: computed once before the first launch, and inputs to everything that reads them.

Taking them out before a graph is divided leaves no rule anything to know about them. A matrix that is wider than the
weight it comes from (an int8 weight as bfloat16) stays with its readers: read narrow, it costs half the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph, Op, TensorSpec
from engine.ir.ops import OP_CLASS, OpClass
from engine.ir.plan import BufferView, Preparation


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is left of a graph, whose last inputs are the prepared values, and how those are computed, in order.

    `results` of the steps number them as buffers: after the inputs of the whole graph.
    """

    graph: Graph
    steps: tuple[Preparation, ...]


@lru_cache(maxsize=16)
def fixed_values(graph: Graph) -> frozenset[int]:
    """Ops, views and inputs among them, whose values depend on at least one weight, and on constants and positions."""
    weights = {graph.inputs[position] for position in graph.weights}
    still = {i for i, op in enumerate(graph.ops) if OP_CLASS[op.kind] in (OpClass.CONSTANT, OpClass.GENERATOR)}
    fixed = set(weights)
    for index, op in enumerate(graph.ops):
        if op.inputs and all(i in fixed or i in still for i in op.inputs):
            (fixed if fixed.intersection(op.inputs) else still).add(index)
    return frozenset(fixed)


def take_out_prepared(graph: Graph) -> Prepared:
    """The graph with its prepared values as inputs; as it is when it has none, or would have nothing left to run."""
    chosen = _chosen(graph) if graph.weights else []
    prepared = set(chosen)
    if not chosen or not _computes_apart_from(graph, prepared):
        return Prepared(graph, ())
    steps = tuple(_step(graph, index, len(graph.inputs) + place) for place, index in enumerate(chosen))
    builder = GraphBuilder()
    labels = graph.labels or ("",) * len(graph.inputs)
    where: dict[int, int] = {}
    for position, index in enumerate(graph.inputs):
        where[index] = builder.input(graph.ops[index].out, labels[position], position in graph.weights)
    for index in chosen:
        out = graph.ops[index].out
        where[index] = builder.input(TensorSpec.contiguous(out.shape, out.dtype))
    for index, op in enumerate(graph.ops):
        if index not in where:
            where[index] = builder.append(Op(op.kind, tuple(where[i] for i in op.inputs), op.out, op.attributes))
    return Prepared(builder.built(*(where[i] for i in graph.outputs)), steps)


def _chosen(graph: Graph) -> list[int]:
    """The prepared values, in order: fixed ops that an op which isn't prepared reads, or that the graph returns."""
    fixed = fixed_values(graph)
    needed = set(graph.outputs)
    chosen: list[int] = []
    for index in range(len(graph.ops) - 1, -1, -1):
        op = graph.ops[index]
        if index not in needed:
            continue
        if index in fixed and op.kind not in ("input", "view") and not _is_widened(graph, index):
            chosen.append(index)
        else:
            needed.update(op.inputs)
    return chosen[::-1]


def _computes_apart_from(graph: Graph, prepared: set[int]) -> bool:
    """Whether an op that isn't a mere view is needed once the prepared values are there."""
    stack, seen = list(graph.outputs), set(prepared)
    while stack:
        index = stack.pop()
        if index in seen:
            continue
        seen.add(index)
        if OP_CLASS[graph.ops[index].kind] not in (OpClass.INPUT, OpClass.CONSTANT, OpClass.VIEW):
            return True
        stack.extend(graph.ops[index].inputs)
    return False


def _is_widened(graph: Graph, index: int) -> bool:
    """Whether a matrix holds the elements of one of the weights behind it in more bytes each."""
    out = graph.ops[index].out
    if sum(extent > 1 for extent in out.shape) < 2:
        return False
    weights = [graph.ops[i].out for i in _behind(graph, index) if graph.ops[i].kind == "input"]
    return any(spec.numel == out.numel and spec.element_bytes < out.element_bytes for spec in weights)


def _behind(graph: Graph, index: int) -> list[int]:
    """The op and everything that it depends on, in the graph's order."""
    seen: set[int] = set()
    stack = [index]
    while stack:
        op = stack.pop()
        if op not in seen:
            seen.add(op)
            stack.extend(graph.ops[op].inputs)
    return sorted(seen)


def _step(graph: Graph, index: int, buffer: int) -> Preparation:
    builder = GraphBuilder()
    where: dict[int, int] = {}
    arguments: list[BufferView] = []
    for number in _behind(graph, index):
        op = graph.ops[number]
        if op.kind == "input":
            where[number] = builder.input(op.out)
            arguments.append(BufferView(graph.inputs.index(number), op.out))
        else:
            where[number] = builder.append(Op(op.kind, tuple(where[i] for i in op.inputs), op.out, op.attributes))
    return Preparation(builder.built(where[index]), tuple(arguments), (buffer,))
