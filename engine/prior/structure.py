"""What a prior sees of a kernel and of a chip: the same numbers for every schedule of a kernel.

They come from the ops of the body, never from a family's name, so a fused body is described like any other.
Extents are (batch, rows, columns, depth): those of the first contraction, with the columns of all that lie side by
side; else the reduced rows and their length; else one row of all elements. `contractions` are those that a program
computes, so products side by side count as one; a reduction that no contraction multiplies is one of the ops behind it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from engine.ir.graph import Graph, Op
from engine.ir.kernel import Kernel
from engine.ir.measures import matmul_extents, product_columns
from engine.ir.ops import OP_CLASS, REDUCTIONS, OpClass
from engine.ir.siblings import body_parts
from engine.vocabulary import Target

Facts = Mapping[str, float]


KERNEL_FACTS = (
    *("contractions", "reductions", "pointwise_ops", "inputs", "outputs", "batch", "rows", "columns", "depth"),
    *("flops", "bytes", "left_width", "right_width", "output_width", "left_transposed", "right_transposed"),
)
TARGET_FACTS = (
    *("capability", "multiprocessors", "shared_limit", "multiprocessor_shared", "multiprocessor_registers"),
    *("multiprocessor_threads", "memory_bandwidth", "peak_bf16", "peak_tf32", "peak_fp32"),
)
"""The names of what `kernel_facts` and `target_facts` say, in order."""


def kernel_facts(kernel: Kernel) -> dict[str, float]:
    """Extents, work (flops, bytes), operand widths (bytes) and op counts of a kernel."""
    body = kernel.body
    counts = _counts(body)
    matmul = next((op for op in body.ops if op.kind == "matmul"), None)
    batch, rows, columns, depth = _extents(body, matmul)
    left, right = [body.ops[i].out for i in matmul.inputs] if matmul else (None, None)
    inputs, outputs = body.input_specs(), body.output_specs()
    return {
        "contractions": float(counts[OpClass.CONTRACTION]),
        "reductions": float(counts[OpClass.REDUCTION]),
        "pointwise_ops": float(counts[OpClass.POINTWISE]),
        "inputs": float(len(inputs)),
        "outputs": float(len(outputs)),
        "batch": float(batch),
        "rows": float(rows),
        "columns": float(columns),
        "depth": float(depth),
        "flops": float(kernel.flops),
        "bytes": float(kernel.bytes_moved),
        "left_width": float(left.element_bytes if left else max((s.element_bytes for s in inputs), default=4)),
        "right_width": float(right.element_bytes if right else 0),
        "output_width": float(max((s.element_bytes for s in outputs), default=4)),
        "left_transposed": float(bool(left and left.strides and left.strides[-1] != 1)),
        "right_transposed": float(bool(right and right.strides and right.strides[-1] != 1)),
    }


def target_facts(target: Target) -> dict[str, float]:
    """The chip, in the units of `Target`."""
    return {
        "capability": float(target.capability),
        "multiprocessors": float(target.multiprocessors),
        "shared_limit": float(target.shared_bytes),
        "multiprocessor_shared": float(target.shared_bytes_per_multiprocessor),
        "multiprocessor_registers": float(target.registers_per_multiprocessor),
        "multiprocessor_threads": float(target.threads_per_multiprocessor),
        "memory_bandwidth": float(target.memory_bandwidth),
        "peak_bf16": float(target.peak_bf16),
        "peak_tf32": float(target.peak_tf32),
        "peak_fp32": float(target.peak_fp32),
    }


def _counts(body: Graph) -> dict[OpClass, int]:
    """Ops of each class as a program computes them; a reduction of single elements is a pointwise op."""
    counts = dict.fromkeys(OpClass, 0)
    for op in body.ops:
        trivial = op.kind in REDUCTIONS and body.ops[op.inputs[0]].out.numel == op.out.numel
        counts[OpClass.POINTWISE if trivial else OP_CLASS[op.kind]] += 1
    if not counts[OpClass.CONTRACTION]:
        return counts
    parts = body_parts(body)
    if parts is not None:
        counts[OpClass.CONTRACTION] = max(map(len, parts))
        counts[OpClass.POINTWISE] += counts[OpClass.REDUCTION]
        counts[OpClass.REDUCTION] = 0
    return counts


def _extents(body: Graph, matmul: Op | None) -> tuple[int, int, int, int]:
    if matmul is not None:
        batch, rows, columns, depth = matmul_extents(body, matmul)
        return batch, rows, product_columns(body) or columns, depth
    for op in body.ops:
        kept, read = op.out.numel, body.ops[op.inputs[0]].out.numel if op.inputs else 0
        if OP_CLASS[op.kind] is OpClass.REDUCTION and read > kept > 0:
            return 1, kept, read // kept, 1
    elements = max((math.prod(spec.shape) for spec in body.output_specs()), default=1)
    return 1, 1, max(elements, 1), 1
