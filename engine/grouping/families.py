"""Which family generates a set of ops as one kernel: the legality that every structural rule asks."""

from __future__ import annotations

from collections.abc import Sequence

from engine.grouping.products import is_contraction
from engine.ir.attention import ATTENTION, attention_chain, unfit_because
from engine.ir.attention_mask import read_masking
from engine.ir.attention_prologue import KEYS, QUERIES, head_ops
from engine.ir.graph import Graph
from engine.ir.ops import OP_CLASS, OpClass
from engine.ir.shapes import GraphError, broadcast_shapes, reduces_last_axes


def family_of_ops(graph: Graph, root: Sequence[int], members: frozenset[int], escaping: tuple[int, ...]) -> str | None:
    """The family of the ops `members`, or None; `root[i]` is the op whose storage op i reads, `escaping` are the
    members whose values somebody else needs."""
    ops = graph.ops
    contractions = [i for i in members if OP_CLASS[ops[i].kind] is OpClass.CONTRACTION]
    reductions = [i for i in members if _reduces(graph, i)]
    if any(ops[i].kind == "extern" for i in members):
        return "extern" if len(members) == 1 else None
    if len(contractions) == 2 and _is_attention(graph, root, members, escaping, max(contractions)):
        return ATTENTION
    if contractions:
        return "contraction" if is_contraction(graph, root, members, escaping) else None
    if any(root[i] != i and root[i] in members for m in members for i in ops[m].inputs):
        return None
    space, axes, results = _space(graph, members, reductions)
    if space is None or not _rolls_fit(graph, members, space, axes):
        return None
    if not _fit(graph, members, space, results, escaping):
        return None
    return "rowwise" if reductions else "pointwise"


_Shape = tuple[int, ...]


def _reduces(graph: Graph, index: int) -> bool:
    """Whether an op is a reduction of more than one element each; one of single elements is a copy."""
    op = graph.ops[index]
    return OP_CLASS[op.kind] is OpClass.REDUCTION and graph.ops[op.inputs[0]].out.numel != op.out.numel


def _space(
    graph: Graph, members: frozenset[int], reductions: list[int]
) -> tuple[_Shape | None, _Shape, tuple[_Shape, ...]]:
    """The shape that a kernel of these ops iterates over (None when there is none), the axes that it reduces, and the
    shapes that its results may have."""
    ops = graph.ops
    if reductions:
        first = ops[reductions[0]]
        space, axes = ops[first.inputs[0]].out.shape, tuple(first.attribute("axes"))
        same = all(
            ops[ops[i].inputs[0]].out.shape == space and tuple(ops[i].attribute("axes")) == axes for i in reductions
        )
        return (space if same and reduces_last_axes(space, axes) else None), axes, (space, first.out.shape)
    try:
        space = broadcast_shapes([ops[i].out.shape for i in members])
    except GraphError:
        return None, (), ()
    return space, (), (space,)


def _fit(
    graph: Graph, members: frozenset[int], space: _Shape, results: tuple[_Shape, ...], escaping: tuple[int, ...]
) -> bool:
    """Whether every op lies in `space` by broadcasting, and every value that leaves has one of the shapes `results`."""
    for index in members:
        shape = graph.ops[index].out.shape
        if len(shape) > len(space) or any(
            extent not in (1, whole) for extent, whole in zip(reversed(shape), reversed(space), strict=False)
        ):
            return False
    return all(graph.ops[index].out.shape in results for index in escaping)


def _rolls_fit(graph: Graph, members: frozenset[int], space: _Shape, axes: _Shape) -> bool:
    """Whether every op that re-reads its inputs in other places finds them in memory, where all of them are.

    A rowwise kernel may also turn what it computed along its rows: it computes that again at the other end.
    """
    last = len(space) - 1
    for index in members:
        op = graph.ops[index]
        if OP_CLASS[op.kind] is not OpClass.REINDEX or not members.intersection(op.inputs):
            continue
        if op.kind != "roll" or axes != (last,) or op.attribute("axis") != last or op.out.shape != space:
            return False
    return True


def _is_attention(
    graph: Graph, root: Sequence[int], members: frozenset[int], escaping: tuple[int, ...], values: int
) -> bool:
    """Whether the ops are one attention chain, alone or with what computes its queries and keys head by head, and
    with the copy that puts its result in another order. The largest logit and the sum of powers of a row may leave
    too where nothing is masked."""
    chain = attention_chain(graph, values)
    if chain is None or not chain.ops <= members or unfit_because(graph, chain) is not None:
        return False
    behind = members - chain.ops
    if behind:
        behind -= head_ops(graph, root, chain, QUERIES, members) | head_ops(graph, root, chain, KEYS, members)
    statistics = {chain.peak, chain.total}
    if set(escaping) - statistics != {max(members)}:
        return False
    if statistics.intersection(escaping) and not read_masking(graph, chain).plain:
        return False
    inner = chain.ops - {values}
    reread = {i for m in members for i in graph.ops[m].inputs if root[i] != i and root[i] in inner}
    return not reread and (not behind or behind == frozenset(reordering_copy(graph, root, values)))


def reordering_copy(graph: Graph, root: Sequence[int], values: int) -> tuple[int, ...]:
    """The copy that stores the result of `values` in another order, if that is its only reader; else nothing."""
    readers = [i for i, op in enumerate(graph.ops) if op.kind != "view" and any(root[s] == values for s in op.inputs)]
    returned = any(root[i] == values for i in graph.outputs)
    if len(readers) != 1 or returned or graph.ops[readers[0]].kind not in ("copy", "cast"):
        return ()
    (copy,) = readers
    view, value = graph.ops[graph.ops[copy].inputs[0]].out, graph.ops[values].out
    steps = sorted((s, e) for e, s in zip(view.shape, view.strides, strict=True) if e > 1)
    expected = 1
    for stride, extent in steps:
        if stride != expected:
            return ()
        expected *= extent
    return (copy,) if expected == value.numel and view.offset == 0 else ()
