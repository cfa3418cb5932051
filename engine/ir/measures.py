"""How much work a body is: floating point operations, bytes of device memory, and its shape in words.

The counts are those of a roofline: a contraction multiplies and adds once per (row, column, depth), every other
op has the rough weight of its kind, and memory is touched once per input and once per output.
"""

from __future__ import annotations

import math

from engine.ir.extern import CONVOLUTION
from engine.ir.graph import Graph, Op, TensorSpec
from engine.ir.ops import FLOPS_PER_ELEMENT, REDUCTIONS
from engine.ir.siblings import body_parts
from engine.ir.views import storage_roots

MAX_BYTES = 2**63


def matmul_extents(body: Graph, matmul: Op) -> tuple[int, int, int, int]:
    """(batch, M, N, K) of a matmul op. With a right operand of rank 2 all leading axes of the left one are rows."""
    left, right = (body.ops[i].out.shape for i in matmul.inputs)
    if len(right) == 2:
        return 1, math.prod(left[:-1]), right[1], left[-1]
    return math.prod(left[:-2]), left[-2], right[-1], left[-1]


def product_columns(body: Graph) -> int:
    """Columns of the products that lie side by side in one kernel; those of one product where they are held at once,
    and 0 where the body is no kernel of products."""
    parts = body_parts(body)
    return sum(matmul_extents(body, body.ops[matmuls[0]])[2] for matmuls in parts or ())


def count_flops(body: Graph) -> int:
    """Floating point operations: 2*B*M*N*K a matmul; 2 * the elements of a filter, for each result of a convolution;
    FLOPS_PER_ELEMENT times the elements read, otherwise."""
    return sum(op_flops(body, op) for op in body.ops)


def op_flops(body: Graph, op: Op) -> int:
    """Floating point operations of one op of the body."""
    if op.kind == "matmul":
        return 2 * math.prod(matmul_extents(body, op))
    if op.kind in REDUCTIONS:
        return FLOPS_PER_ELEMENT[op.kind] * body.ops[op.inputs[0]].out.numel
    if op.attribute("op") == CONVOLUTION:
        weight = body.ops[op.inputs[1]].out
        return 2 * op.out.numel * (weight.numel // max(weight.shape[0], 1))
    return FLOPS_PER_ELEMENT.get(op.kind, 0) * op.out.numel


def count_bytes(body: Graph) -> int:
    """Fewest bytes of device memory: each input read once (of a gathered table its rows), each output written once."""
    return count_read_bytes(body) + count_written_bytes(body)


def count_read_bytes(body: Graph) -> int:
    """Fewest bytes that are read: each input once, of a gathered table its rows."""
    return sum(input_bytes(body))


def input_bytes(body: Graph) -> tuple[int, ...]:
    """Bytes of each input, in order; of a gathered table those of its rows."""
    tables = _gathered_bytes(body)
    return tuple(min(_touched_bytes(body.ops[i].out), tables.get(i, MAX_BYTES)) for i in body.inputs)


def count_written_bytes(body: Graph) -> int:
    """Fewest bytes that are written: each output once."""
    return sum(_touched_bytes(spec) for spec in body.output_specs())


def _gathered_bytes(body: Graph) -> dict[int, int]:
    """For each input that is only a table whose rows are gathered, the bytes of those rows."""
    found: dict[int, int] = {}
    others: set[int] = set()
    if not any(op.kind == "gather" for op in body.ops):
        return found
    root = storage_roots(body)
    for op in body.ops:
        for position, source in enumerate(op.inputs):
            if op.kind == "gather" and position == 0:
                found[root[source]] = found.get(root[source], 0) + op.out.numel * op.out.element_bytes
            elif op.kind != "view":
                others.add(root[source])
    return {index: size for index, size in found.items() if index not in others and index not in body.outputs}


def _touched_bytes(spec: TensorSpec) -> int:
    """An overlapping view (a sliding window) never touches more than its storage."""
    return min(spec.bytes, (spec.storage_elements - spec.offset) * spec.element_bytes) if spec.numel else 0


def describe_shape(family: str, body: Graph) -> str:
    """For people: "MxNxK dtype" of a contraction (batch in front when above 1), else "16384x4096 bfloat16"."""
    for op in body.ops:
        if op.kind == "matmul":
            batch, rows, columns, depth = matmul_extents(body, op)
            extents = (batch, rows, product_columns(body) or columns, depth)
            return _text(extents if extents[0] > 1 else extents[1:], body.ops[op.inputs[0]].out.dtype)
    shapes = [body.ops[op.inputs[0]].out.shape for op in body.ops if op.kind in REDUCTIONS]
    shape = shapes[0] if family == "rowwise" and shapes else body.ops[body.outputs[0]].out.shape
    readers = [spec.dtype for spec in body.input_specs() if spec.shape == shape]
    return _text(shape, readers[0] if readers else body.ops[body.outputs[0]].out.dtype)


def _text(extents: tuple[int, ...], dtype: str) -> str:
    return f"{'x'.join(str(extent) for extent in extents) or 'scalar'} {dtype}"
