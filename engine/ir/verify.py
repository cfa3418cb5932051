"""Whether a graph says only possible things.

A database's body is hostile data: every number that later becomes a loop bound, an index or an allocation is
checked here, once, at the door.
"""

from __future__ import annotations

import math

from engine.ir.extern import verify_call
from engine.ir.graph import DTYPE_BYTES, Attribute, Graph, Op, TensorSpec
from engine.ir.ops import ARITY, FEWEST_INPUTS, OP_CLASS, OpClass
from engine.ir.shapes import FLOATS, TRUTH_KINDS, GraphError, OpError, infer_shape, reindexed_spec

MAX_OPS = 50_000
MAX_RANK = 12
MAX_ELEMENTS = 2**40
MAX_LABEL = 200
MAX_INPUTS = 1024


_AXIS_ATTRIBUTES = {"iota": ["axis"], "cat": ["axis"], "roll": ["axis", "shift"]}


def verify(graph: Graph) -> Graph:
    """Return the graph, or raise GraphError with one sentence that says which op is wrong and how."""
    if not isinstance(graph.ops, tuple) or not 0 < len(graph.ops) <= MAX_OPS:
        raise GraphError(f"a graph has 1 to {MAX_OPS} ops")
    roots: list[TensorSpec] = []
    for index, op in enumerate(graph.ops):
        try:
            _verify_op(graph, index, op)
            roots.append(_verify_view(graph, op, roots) if op.kind == "view" else op.out)
        except GraphError as error:
            raise OpError(index, str(op.kind)[:40], str(error)) from None
    _verify_ends(graph)
    return graph


def verify_spec(spec: TensorSpec) -> None:
    """Raise GraphError unless shape, strides, offset and dtype are possible."""
    if not isinstance(spec.dtype, str) or spec.dtype not in DTYPE_BYTES:
        raise GraphError(f"unknown dtype {str(spec.dtype)[:40]!r}")
    numbers = (*spec.shape, *spec.strides, spec.offset)
    if not all(_is_index(number, MAX_ELEMENTS + 1) for number in numbers):
        raise GraphError(f"shape, strides and offset are whole numbers from 0 to {MAX_ELEMENTS}")
    if len(spec.shape) != len(spec.strides) or len(spec.shape) > MAX_RANK:
        raise GraphError(f"a tensor has one stride an axis and at most {MAX_RANK} axes")
    if math.prod(spec.shape) > MAX_ELEMENTS or spec.storage_elements > MAX_ELEMENTS:
        raise GraphError(f"a tensor has at most {MAX_ELEMENTS} elements")


def _verify_op(graph: Graph, index: int, op: Op) -> None:
    if op.kind not in OP_CLASS:
        raise GraphError("unknown kind of op")
    _verify_arity(op)
    if not all(_is_index(i, index) for i in op.inputs):
        raise GraphError("reads an op that doesn't come before it")
    verify_spec(op.out)
    _verify_attributes(op)
    specs = [graph.ops[i].out for i in op.inputs]
    if op.kind not in ("input", "view") and not op.out.is_contiguous:
        raise GraphError("has a result that isn't contiguous")
    if op.kind == "constant" and op.out.shape != ():
        raise GraphError("is a constant with axes")
    _verify_result(op, specs)
    _verify_dtypes(op, specs)


def _verify_arity(op: Op) -> None:
    fewest = FEWEST_INPUTS.get(op.kind)
    if fewest is None and len(op.inputs) != ARITY[op.kind]:
        raise GraphError(f"takes {ARITY[op.kind]} inputs, not {len(op.inputs)}")
    if fewest is not None and not fewest <= len(op.inputs) <= MAX_INPUTS:
        raise GraphError(f"takes {fewest} to {MAX_INPUTS} inputs, not {len(op.inputs)}")


def _verify_result(op: Op, specs: list[TensorSpec]) -> None:
    op_class = OP_CLASS[op.kind]
    if op_class in (OpClass.POINTWISE, OpClass.REDUCTION, OpClass.CONTRACTION):
        expected = infer_shape(op.kind, [spec.shape for spec in specs], op.attribute("axes", ()))
        if op.out.shape != expected:
            raise GraphError(f"has shape {op.out.shape}, and its inputs give {expected}")
    elif op_class is OpClass.REINDEX:
        moved = reindexed_spec(op.kind, specs, op.attribute("axis", 0), op.attribute("shift", 0))
        if (op.out.shape, op.out.dtype) != (moved.shape, moved.dtype):
            raise GraphError(f"has shape {op.out.shape} {op.out.dtype}, not {moved.shape} {moved.dtype}")
    elif op_class is OpClass.GENERATOR:
        _verify_iota(op)
    elif op_class is OpClass.EXTERN:
        verify_call(op.attribute("op"), op.attribute("arguments"), len(op.inputs))


def _verify_iota(op: Op) -> None:
    axis = op.attribute("axis")
    if op.out.dtype not in ("int64", "int32"):
        raise GraphError(f"counts in int64 or int32, not {op.out.dtype}")
    if axis >= len(op.out.shape) or any(extent != 1 for i, extent in enumerate(op.out.shape) if i != axis):
        raise GraphError(f"counts along axis {axis}, and has shape {op.out.shape}")


def _verify_dtypes(op: Op, specs: list[TensorSpec]) -> None:
    if (op.kind in TRUTH_KINDS) and op.out.dtype != "bool":
        raise GraphError(f"gives bool, not {op.out.dtype}")
    if op.kind == "where" and specs[0].dtype != "bool":
        raise GraphError(f"has a condition of dtype {specs[0].dtype}")
    if op.kind == "matmul":
        left, right = specs
        if left.dtype != right.dtype or left.dtype not in FLOATS or op.out.dtype not in FLOATS:
            raise GraphError(f"multiplies {left.dtype} by {right.dtype} into {op.out.dtype}")


def _verify_view(graph: Graph, op: Op, roots: list[TensorSpec]) -> TensorSpec:
    """The spec of the storage that the view reads; a view of a view reads the same storage."""
    root = roots[op.inputs[0]]
    if graph.ops[op.inputs[0]].kind == "constant":
        raise GraphError("views a constant")
    if op.out.dtype != root.dtype:
        raise GraphError(f"views {root.dtype} as {op.out.dtype}")
    if op.out.storage_elements > root.storage_elements:
        raise GraphError("reaches past the end of what it views")
    return root


def _verify_attributes(op: Op) -> None:
    values: dict[str, Attribute] = dict(op.attributes)
    if list(values) != sorted(values) or len(values) != len(op.attributes):
        raise GraphError("attributes are sorted by name and occur once")
    if op.kind == "constant":
        legal = list(values) == ["value"] and isinstance(values["value"], int | float)
    elif op.kind == "matmul":
        legal = list(values) == ["allow_tf32"] and isinstance(values["allow_tf32"], bool)
    elif OP_CLASS[op.kind] is OpClass.REDUCTION:
        axes = values.get("axes")
        legal = list(values) == ["axes"] and isinstance(axes, tuple) and all(_is_index(a, MAX_RANK) for a in axes)
    elif op.kind in _AXIS_ATTRIBUTES:
        legal = list(values) == _AXIS_ATTRIBUTES[op.kind] and _is_index(values["axis"], MAX_RANK)
        legal = legal and _is_index(values.get("shift", 0), MAX_ELEMENTS)
    elif op.kind == "extern":
        place = values.pop("result", 0)
        legal = list(values) == ["arguments", "op"] and all(isinstance(value, str) for value in values.values())
        legal = legal and _is_index(place, MAX_RANK)
    else:
        legal = not values
    if not legal:
        raise GraphError("has missing, unknown or ill-typed attributes")


def _verify_ends(graph: Graph) -> None:
    if not graph.outputs:
        raise GraphError("a graph has at least one output")
    if not all(_is_index(i, len(graph.ops)) for i in (*graph.inputs, *graph.outputs)):
        raise GraphError("an input or output of the graph names no op")
    if len(set(graph.inputs)) != len(graph.inputs) or set(graph.inputs) != {
        index for index, op in enumerate(graph.ops) if op.kind == "input"
    }:
        raise GraphError("the graph's inputs are its input ops, each once")
    if not all(_is_index(i, len(graph.inputs)) for i in graph.weights) or list(graph.weights) != sorted(
        set(graph.weights)
    ):
        raise GraphError("a graph's weights are positions of inputs, in order")
    if graph.labels and len(graph.labels) != len(graph.inputs):
        raise GraphError("a graph has one label an input, or none")
    if not all(isinstance(t, str) and len(t) <= MAX_LABEL and t.isprintable() for t in graph.labels):
        raise GraphError(f"a label is printable text of at most {MAX_LABEL} characters")


def _is_index(value: object, below: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below
