"""What computes an attention's queries or keys, head by head: the norm and rotation that may start its kernel.

Each such op keeps the elements of a head together: it is pointwise, turns a head, or reduces a whole head. So a kernel
that holds a block of heads recomputes all of it on the block, and no element is needed from elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.ir.attention import AttentionChain
from engine.ir.graph import Graph, Op, TensorSpec, contiguous_strides
from engine.ir.measures import matmul_extents
from engine.ir.ops import OP_CLASS, OpClass
from engine.ir.shapes import FLOATS
from engine.ir.views import storage_roots

QUERIES, KEYS = 0, 1
"""Positions of the operands of the scores' matmul."""


def operand_prologue(graph: Graph, chain: AttentionChain, operand: int) -> frozenset[int]:
    """The ops that compute `operand` (QUERIES or KEYS) of the chain's scores and that nobody else needs; often none."""
    root = storage_roots(graph)
    candidates = head_ops(graph, root, chain, operand)
    readers: dict[int, set[int]] = {index: set() for index in candidates}
    for index, op in enumerate(graph.ops):
        if op.kind != "view":
            for source in {root[i] for i in op.inputs} & candidates:
                readers[source].add(index)
    returned = {root[i] for i in graph.outputs}
    found = {chain.scores}
    for index in sorted(candidates, reverse=True):
        if index not in returned and readers[index] <= found:
            found.add(index)
    found.remove(chain.scores)
    return frozenset(found) if root[graph.ops[chain.scores].inputs[operand]] in found else frozenset()


def head_ops(
    graph: Graph, root: Sequence[int], chain: AttentionChain, operand: int, members: frozenset[int] | None = None
) -> frozenset[int]:
    """The ops behind an operand of the scores, among `members` if given, that keep to their heads; `root[i]` is the op
    whose storage op i reads. A part of them can start an attention kernel if nobody else needs any of their values.

    A tensor that is multiplied as it is may not be computed on in the same loop, which Triton 3.6 miscompiles, so what
    reads the other operand or the values is not among them.
    """
    scores = graph.ops[chain.scores]
    depth = matmul_extents(graph, scores)[3]
    source = root[scores.inputs[operand]]
    size = graph.ops[source].out.numel
    digits = _head_digits(graph.ops[scores.inputs[operand]].out, operand, depth, size)
    multiplied = {root[scores.inputs[1 - operand]], root[graph.ops[chain.values].inputs[1]]}
    if depth < 2 or digits is None:
        return frozenset()
    found: set[int] = set()
    moved: set[int] = set()
    stack = [source]
    while stack:
        index = stack.pop()
        op = graph.ops[index]
        known = index in found or (members is not None and index not in members)
        if known or index in multiplied or multiplied.intersection(root[i] for i in op.inputs):
            continue
        if _keeps_heads(graph, op, depth, size) and _cuts_evenly(op.out.shape, depth, size, digits):
            found.add(index)
            moved.update(root[i] for i in op.inputs if not _is_reshape(graph.ops[i].out, graph.ops[root[i]].out))
            stack += [root[i] for i in op.inputs]
    return frozenset(found - moved)


def _head_digits(view: TensorSpec, operand: int, depth: int, size: int) -> list[tuple[int, int]] | None:
    """The (stride, extent) of the axes that tell the heads of an operand apart, or None when it isn't made of whole
    heads that lie in memory one after the other, each read at least once."""
    head = -1 if operand == QUERIES else -2
    if len(view.shape) < 2 or view.offset or view.strides[head] != 1 or size % max(depth, 1):
        return None
    axes = [axis for axis in range(len(view.shape)) if axis != len(view.shape) + head]
    digits = sorted((view.strides[a], view.shape[a]) for a in axes if view.shape[a] > 1 and view.strides[a])
    expected = depth
    for stride, extent in digits:
        if stride != expected:
            return None
        expected *= extent
    return digits if expected == size else None


def _is_reshape(view: TensorSpec, viewed: TensorSpec) -> bool:
    return view.is_contiguous and view.numel == viewed.numel


def _keeps_heads(graph: Graph, op: Op, depth: int, size: int) -> bool:
    """Whether the op computes heads of `depth` elements, or one number a head, from nothing but the same head."""
    shape, kind = op.out.shape, OP_CLASS[op.kind]
    if not shape:
        return False
    whole = op.out.numel == size and shape[-1] % depth == 0
    if kind is OpClass.REDUCTION:
        read = graph.ops[op.inputs[0]].out
        last = tuple(op.attribute("axes")) == (len(read.shape) - 1,)
        return last and read.shape[-1] == depth and read.numel == size and op.out.dtype in FLOATS
    if op.kind == "roll":
        return whole and shape[-1] == depth and op.attribute("axis") == len(shape) - 1
    return kind is OpClass.POINTWISE and (whole or (op.out.numel * depth == size and shape[-1] == 1))


def _cuts_evenly(shape: tuple[int, ...], depth: int, size: int, digits: list[tuple[int, int]]) -> bool:
    """Whether the axes of `shape` begin and end where the axes do through which heads are read, or divide them."""
    scale = 1 if shape[-1] != 1 or size == depth else depth
    for bound in (place * scale for place in contiguous_strides(shape)):
        for stride, extent in digits:
            if stride < bound < stride * extent and (bound % stride or extent % (bound // stride)):
                return False
    return True
