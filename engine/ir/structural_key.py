"""The fingerprint of what a kernel computes.

Two bodies that differ in names, in the order in which their ops were written, in the order of their inputs and
outputs, or in the order of commutative operands have one key. Shapes, dtypes, attributes, sharing between ops,
strides (not of an axis of extent 1) and the alignment of an input's offset are part of it: a time depends on them.
Where an input lies beyond that is not (see `engine.ir.placement`), and no text may depend on it.
Ops are coloured from below and from above (Weisfeiler and Leman's refinement), the body is rewritten in the order
of the colours, and the key is the sha256 of that text, so equal keys mean equal bodies.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache

from engine.ir.graph import Graph, Op, TensorSpec
from engine.ir.ops import COMMUTATIVE
from engine.ir.placement import ALIGNMENT_BYTES, placed
from engine.ir.shapes import GraphError

KEY_DIGITS = 24
_ROUNDS = 3
"""A round carries a colour the whole way up and down, so few are enough, and a hostile body can't ask for more."""


@lru_cache(maxsize=8192)
def structural_key(family: str, body: Graph) -> str:
    """24 hex digits, the same in any process and for any hash seed.

    Remembered, because groupings of one graph share most of their bodies.
    """
    text = json.dumps(canonical_form(family, body), separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_DIGITS]


def canonical_form(family: str, body: Graph) -> list[object]:
    """The body as nested lists in canonical order: [family, ops, outputs], ops numbered from the outputs."""
    rows, outputs, _ = _canonical(body)
    return [family, rows, outputs]


def canonical_numbers(body: Graph) -> dict[int, int]:
    """The number that each op has in the canonical form, by op index: bodies with equal forms are one body, whose ops
    are told apart by these numbers. Ops that no output needs have none."""
    _, _, numbers = _canonical(body)
    return numbers


def same_ends(body: Graph, other: Graph) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For each input of `body`, and for each of its outputs, the position of the same one in `other`: an equal body,
    written in another order. Raises GraphError for bodies that differ."""
    body, other = placed(body), placed(other)
    if (body.ops, body.inputs, body.outputs) == (other.ops, other.inputs, other.outputs):
        return tuple(range(len(body.inputs))), tuple(range(len(body.outputs)))
    return _same_ends(body, other)


@lru_cache(maxsize=1024)
def _same_ends(body: Graph, other: Graph) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if _canonical(body)[0] != _canonical(other)[0]:
        raise GraphError("two kernels of one key compute different things")
    inputs = _places(_ends(body, body.inputs), _ends(other, other.inputs))
    return inputs, _places(_ends(body, body.outputs), _ends(other, other.outputs))


def _ends(body: Graph, ends: tuple[int, ...]) -> list[str]:
    """What each of some ops is in every equal body; an input that nothing reads is what it looks like."""
    numbers = canonical_numbers(body)
    return [str(numbers[i]) if i in numbers else json.dumps(_describe(body.ops[i])) for i in ends]


def _places(ends: list[str], others: list[str]) -> tuple[int, ...]:
    """For each end its position among the others; of outputs that are one value each may stand for each."""
    if sorted(ends) != sorted(others):
        raise GraphError("two kernels of one key read or give different things")
    left: dict[str, list[int]] = {}
    for position, end in enumerate(others):
        left.setdefault(end, []).append(position)
    return tuple(left[end].pop(0) for end in ends)


def _canonical(body: Graph) -> tuple[list[object], list[int], dict[int, int]]:
    """The rows and outputs of the canonical form, and the number of each op of the body that is in it."""
    body = placed(body)
    merged, where = _merge_equal_ops(body)
    outputs = [where[i] for i in body.outputs]
    colours = _colours(merged, outputs)
    numbers: dict[int, int] = {}
    rows: list[object] = []
    ordered_outputs = sorted(outputs, key=colours.__getitem__)
    for root in ordered_outputs:
        for index in _post_order(merged, root, colours, numbers):
            op = merged[index]
            arguments = [numbers[i] for i in op.inputs]
            if op.kind in COMMUTATIVE:
                arguments.sort()
            numbers[index] = len(numbers)
            rows.append([_describe(op), arguments])
    own = {index: numbers[place] for index, place in where.items() if place in numbers}
    # Outputs of one colour may have been reached through others, in an order of their own.
    return rows, [number for _, number in sorted((colours[i], numbers[i]) for i in outputs)], own


def _merge_equal_ops(body: Graph) -> tuple[list[Op], dict[int, int]]:
    """Value numbering: equal ops on equal arguments become one. Inputs stay apart. Says where each op went."""
    merged: list[Op] = []
    where: dict[int, int] = {}
    seen: dict[str, int] = {}
    for index, op in enumerate(body.ops):
        arguments = tuple(where[i] for i in op.inputs)
        if op.kind in COMMUTATIVE:
            arguments = tuple(sorted(arguments))
        text = f"input {index}" if op.kind == "input" else json.dumps([_describe(op), arguments])
        if text not in seen:
            seen[text] = len(merged)
            merged.append(Op(op.kind, arguments, op.out, op.attributes))
        where[index] = seen[text]
    return merged, where


def _colours(ops: list[Op], outputs: list[int]) -> list[str]:
    """One colour an op, equal only for ops that neither their inputs nor their users tell apart."""
    colours = [_digest(_describe(op)) for op in ops]
    for index in outputs:
        colours[index] = _digest([colours[index], "output"])
    for _ in range(_ROUNDS):
        uses: list[list[str]] = [[] for _ in ops]
        for index, op in enumerate(ops):
            below = [colours[i] for i in op.inputs]
            colours[index] = _digest([colours[index], sorted(below) if op.kind in COMMUTATIVE else below])
        for index in range(len(ops) - 1, -1, -1):
            op = ops[index]
            colours[index] = _digest([colours[index], sorted(uses[index])])
            for position, argument in enumerate(op.inputs):
                place = -1 if op.kind in COMMUTATIVE else position
                uses[argument].append(f"{colours[index]}:{place}")
    return colours


def _post_order(ops: list[Op], root: int, colours: list[str], done: dict[int, int]) -> list[int]:
    """Ops below `root` that are not done, arguments first; iterative, since a database may hold a deep body."""
    order: list[int] = []
    visited = set(done)
    stack = [(root, False)]
    while stack:
        index, expanded = stack.pop()
        if expanded:
            order.append(index)
            continue
        if index in visited:
            continue
        visited.add(index)
        stack.append((index, True))
        arguments = list(ops[index].inputs)
        if ops[index].kind in COMMUTATIVE:
            arguments.sort(key=colours.__getitem__)
        stack.extend((i, False) for i in reversed(arguments))
    return order


def _describe(op: Op) -> list[object]:
    attributes: list[object] = [[name, _attribute(op, value)] for name, value in sorted(op.attributes)]
    return [op.kind, attributes, *_describe_spec(op.out, op.kind)]


def _attribute(op: Op, value: object) -> object:
    """A constant's 1 and 1.0 are one value in a floating dtype."""
    if op.kind == "constant" and isinstance(value, int | float) and "float" in op.out.dtype:
        return repr(float(value))
    return list(value) if isinstance(value, tuple) else value


def _describe_spec(spec: TensorSpec, kind: str) -> list[object]:
    strides = [
        0 if extent == 1 or spec.numel == 0 else stride for extent, stride in zip(spec.shape, spec.strides, strict=True)
    ]
    offset = spec.offset * spec.element_bytes % ALIGNMENT_BYTES if kind == "input" else spec.offset
    return [list(spec.shape), spec.dtype, strides, offset]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()[:KEY_DIGITS]
