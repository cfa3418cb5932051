"""A set of ops written out as the body of a kernel: what it reads becomes inputs, what others need becomes outputs."""

from __future__ import annotations

from dataclasses import dataclass

from engine.grouping.partition import Facts, escaping
from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph, Op, TensorSpec, contiguous_strides
from engine.ir.shapes import infer_shape
from engine.ir.views import Axes, view_axes


@dataclass(frozen=True, slots=True)
class Body:
    """A body, and per body input the op whose buffer is read and how; `outputs` are op indices of the graph."""

    graph: Graph
    reads: tuple[tuple[int, TensorSpec], ...]
    outputs: tuple[int, ...]


def write_body(facts: Facts, members: frozenset[int], inlined: frozenset[int] = frozenset()) -> Body:
    """The body of the ops `members`, which recompute the values of the ops `inlined` instead of reading them."""
    return _Writer(facts, members, inlined).write()


def _walk(shape: tuple[int, ...], view: TensorSpec, axes: Axes, rank: int) -> list[int | None]:
    """Per view axis, the axis of an operand of `shape` (aligned right within `rank` axes) that it walks, or None."""
    shift = rank - len(shape)
    return [axis - shift if axis is not None and axis >= shift and shape[axis - shift] > 1 else None for axis in axes]


def _seen_through(spec: TensorSpec, view: TensorSpec, axes: Axes, rank: int) -> TensorSpec:
    """The spec of an operand of a pointwise op, once the view of the op's result is applied to the operand itself."""
    walked = _walk(spec.shape, view, axes, rank)
    expanded = [axis is None and source is None for axis, source in zip(walked, axes, strict=True)]
    shape = tuple(
        view.shape[i] if expanded[i] else (spec.shape[axis] if axis is not None else 1) for i, axis in enumerate(walked)
    )
    strides = tuple(spec.strides[axis] if axis is not None else 0 for axis in walked)
    return TensorSpec(shape, spec.dtype, strides, spec.offset)


class _Writer:
    def __init__(self, facts: Facts, members: frozenset[int], inlined: frozenset[int]) -> None:
        self._facts = facts
        self._members = members
        self._inlined = inlined
        self._builder = GraphBuilder()
        self._written: dict[int, int] = {}
        self._reads: dict[tuple[int, TensorSpec], int] = {}

    def write(self) -> Body:
        outputs = escaping(self._facts, self._members)
        for index in sorted(self._members):
            op = self._facts.graph.ops[index]
            arguments = tuple(self._argument(i) for i in op.inputs)
            self._written[index] = self._builder.append(Op(op.kind, arguments, op.out, op.attributes))
        graph = self._builder.built(*(self._written[i] for i in outputs))
        return Body(graph, tuple(self._reads), outputs)

    def _argument(self, index: int) -> int:
        """The body's op for the value `index`: written already, recomputed, a constant, or read from a buffer."""
        if index in self._written:
            return self._written[index]
        op = self._facts.graph.ops[index]
        root = self._facts.root[index]
        if op.kind == "constant":
            return self._builder.append(op)
        if index in self._facts.generated:
            self._written[index] = self._recompute(index)
            return self._written[index]
        if root != index and root in self._members:
            return self._builder.append(Op(op.kind, (self._written[root],), op.out, op.attributes))
        if root in self._inlined and root not in self._members:
            if root == index:
                self._written[index] = self._recompute(index)
                return self._written[index]
            axes = view_axes(op.out, self._facts.graph.ops[root].out)
            if axes is not None:
                return self._recompute_viewed(root, op.out, axes)
        return self._read(root, op.out)

    def _recompute(self, index: int) -> int:
        op = self._facts.graph.ops[index]
        return self._builder.append(Op(op.kind, tuple(self._argument(i) for i in op.inputs), op.out, op.attributes))

    def _recompute_viewed(self, index: int, view: TensorSpec, axes: Axes) -> int:
        """Recompute op `index` as the view sees it: a pointwise op of viewed operands is the viewed result."""
        op = self._facts.graph.ops[index]
        rank = len(op.out.shape)
        arguments = []
        for source in op.inputs:
            operand = self._facts.graph.ops[source]
            if operand.kind == "constant":
                arguments.append(self._builder.append(operand))
                continue
            seen = _seen_through(operand.out, view, axes, rank)
            if source in self._facts.generated:
                held = self._argument(self._facts.root[source])
                arguments.append(self._builder.view(held, seen.shape, seen.strides, seen.offset))
                continue
            if self._facts.root[source] in self._inlined and self._facts.root[source] == source:
                inner = tuple(_walk(operand.out.shape, view, axes, rank))
                arguments.append(self._recompute_viewed(source, seen, inner))
            else:
                arguments.append(self._read(self._facts.root[source], seen))
        shape = infer_shape(op.kind, [self._builder.spec(i).shape for i in arguments])
        out = TensorSpec(shape, op.out.dtype, contiguous_strides(shape))
        held = self._builder.append(Op(op.kind, tuple(arguments), out, op.attributes))
        # Numbers alone have no axes that could show how far the view expands what is made of them.
        return held if shape or not view.shape else self._builder.view(held, view.shape, (0,) * len(view.shape))

    def _read(self, root: int, spec: TensorSpec) -> int:
        key = (root, spec)
        if key not in self._reads:
            self._reads[key] = self._builder.input(spec, self._label(root))
        return self._reads[key]

    def _label(self, root: int) -> str:
        graph = self._facts.graph
        return graph.labels[graph.inputs.index(root)] if graph.labels and root in graph.inputs else ""
