"""Graphs written op by op: each result's spec is computed, so that a rule or a test says only what it means."""

from __future__ import annotations

from engine.ir.graph import Attribute, Graph, Op, TensorSpec, contiguous_strides
from engine.ir.ops import OP_CLASS, REDUCTIONS, OpClass
from engine.ir.shapes import GraphError, infer_dtype, infer_shape, reindexed_spec
from engine.ir.verify import verify


class GraphBuilder:
    """Collects ops in order; every method that adds one returns its index. Equal ops are added once."""

    def __init__(self) -> None:
        self._ops: list[Op] = []
        self._inputs: list[int] = []
        self._labels: list[str] = []
        self._weights: list[int] = []
        self._seen: dict[tuple[str, tuple[int, ...], TensorSpec, str], int] = {}

    def __len__(self) -> int:
        return len(self._ops)

    def op(self, index: int) -> Op:
        return self._ops[index]

    def spec(self, index: int) -> TensorSpec:
        return self._ops[index].out

    def input(self, spec: TensorSpec, label: str = "", weight: bool = False) -> int:
        """Add an input of the graph, a `weight` where it never changes between calls; inputs are never merged."""
        self._ops.append(Op("input", (), spec))
        if weight:
            self._weights.append(len(self._inputs))
        self._inputs.append(len(self._ops) - 1)
        self._labels.append(label)
        return len(self._ops) - 1

    def constant(self, value: int | float | bool, dtype: str = "float32") -> int:
        return self.append(Op("constant", (), TensorSpec((), dtype, ()), (("value", value),)))

    def view(self, source: int, shape: tuple[int, ...], strides: tuple[int, ...], offset: int | None = None) -> int:
        """Re-read the storage of `source`; `offset` (elements from the storage's start) defaults to the source's."""
        spec = self.spec(source)
        seen = TensorSpec(shape, spec.dtype, strides, spec.offset if offset is None else offset)
        return source if seen == spec else self.append(Op("view", (source,), seen))

    def add(self, kind: str, *inputs: int, dtype: str | None = None, **attributes: Attribute) -> int:
        """Add a pointwise op, a reduction (`axes=...`), a matmul, a roll (`axis=..., shift=...`), a cat (`axis=...`) or
        a gather; `dtype` defaults to the one torch would give, and these last three have no other.

        Raises GraphError when the inputs' shapes don't fit, or a cast comes without a dtype.
        """
        specs = [self.spec(i) for i in inputs]
        if OP_CLASS.get(kind) is OpClass.REINDEX:
            numbers = {name: value for name, value in attributes.items() if isinstance(value, int)}
            return self.append(
                Op(kind, inputs, reindexed_spec(kind, specs, **numbers), tuple(sorted(attributes.items())))
            )
        if kind == "matmul":
            attributes.setdefault("allow_tf32", False)
        axes = attributes.get("axes")
        shape = infer_shape(kind, [s.shape for s in specs], axes if isinstance(axes, tuple) else ())
        if dtype is None:
            if kind == "cast":
                raise GraphError("a cast needs the dtype it casts to")
            dtype = infer_dtype(kind, specs, [self._ops[i].kind == "constant" for i in inputs])
        out = TensorSpec(shape, dtype, contiguous_strides(shape))
        return self.append(Op(kind, tuple(inputs), out, tuple(sorted(attributes.items()))))

    def iota(self, extent: int, axis: int = 0, rank: int = 1, dtype: str = "int64") -> int:
        """0 .. extent - 1 along `axis` of a tensor of `rank` axes, the others of extent 1."""
        shape = tuple(extent if i == axis else 1 for i in range(rank))
        return self.append(Op("iota", (), TensorSpec.contiguous(shape, dtype), (("axis", axis),)))

    def extern(
        self, op: str, inputs: tuple[int, ...], arguments: str, out: TensorSpec, result: int | None = None
    ) -> int:
        """A call of an ATen op from `engine.ir.extern`; `arguments` is its canonical text, `out` what the op gives,
        as its `result` where it has several."""
        which: tuple[tuple[str, Attribute], ...] = () if result is None else (("result", result),)
        return self.append(Op("extern", inputs, out, (("arguments", arguments), ("op", op), *which)))

    def reduce_and_drop(self, kind: str, source: int, axes: tuple[int, ...], dtype: str | None = None) -> int:
        """A reduction without its reduced axes: the reduction, then a view that drops them."""
        if kind not in REDUCTIONS:
            raise GraphError(f"{kind} is no reduction")
        reduced = self.add(kind, source, axes=axes, dtype=dtype)
        shape = tuple(e for axis, e in enumerate(self.spec(reduced).shape) if axis not in axes)
        return self.view(reduced, shape, contiguous_strides(shape))

    def append(self, op: Op) -> int:
        """Add a ready op, or return the index of the equal one that is there."""
        # As text, attributes that Python calls equal (1, 1.0 and True, or 0.0 and -0.0) differ.
        key = (op.kind, op.inputs, op.out, repr(op.attributes) if op.attributes else "")
        if op.kind == "input" or key not in self._seen:
            self._seen[key] = len(self._ops)
            self._ops.append(op)
        return self._seen[key]

    def build(self, *outputs: int) -> Graph:
        """The verified graph. Ops that no output needs are left out; inputs stay."""
        return verify(self.built(*outputs))

    def built(self, *outputs: int) -> Graph:
        """`build` without the check, where every op comes from a verified graph."""
        needed = set(self._inputs)
        stack = list(outputs)
        while stack:
            index = stack.pop()
            if index not in needed:
                needed.add(index)
                stack.extend(self._ops[index].inputs)
        where = {old: new for new, old in enumerate(sorted(needed))}
        ops = tuple(
            Op(op.kind, tuple(where[i] for i in op.inputs), op.out, op.attributes)
            for index, op in enumerate(self._ops)
            if index in needed
        )
        labels = tuple(self._labels) if any(self._labels) else ()
        inputs, results = tuple(where[i] for i in self._inputs), tuple(where[i] for i in outputs)
        return Graph(ops, inputs, results, labels, tuple(self._weights))
