"""A graph written again with some of its matmuls replaced, which is all that a rewrite does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph, Op

Replacement = Callable[[GraphBuilder, Mapping[int, int]], int]
"""Writes what stands for an op and returns it; the mapping gives each earlier op of the old graph in the new one."""


def rebuilt(graph: Graph, replacements: Mapping[int, Replacement]) -> Graph:
    """The graph with each op in `replacements` written by its function; what nobody needs then is gone.

    A replacement is a computing op (no view) of the old op's shape and dtype: views of the old op then read it alike.
    """
    builder = GraphBuilder()
    where = copied(graph, builder, replacements)
    return builder.built(*(where[i] for i in graph.outputs))


def copied(
    graph: Graph, builder: GraphBuilder, replacements: Mapping[int, Replacement] = MappingProxyType({})
) -> dict[int, int]:
    """Write every op of `graph` into a builder, and where each went."""
    labels = graph.labels or ("",) * len(graph.inputs)
    position = {op: number for number, op in enumerate(graph.inputs)}
    where: dict[int, int] = {}
    for index, op in enumerate(graph.ops):
        if op.kind == "input":
            where[index] = builder.input(op.out, labels[position[index]], position[index] in graph.weights)
        elif index in replacements:
            where[index] = replacements[index](builder, where)
        else:
            where[index] = builder.append(Op(op.kind, tuple(where[i] for i in op.inputs), op.out, op.attributes))
    return where
