"""The least that every correct schedule of a body does: products that count, and bytes that have to be read.

An attention's mask that positions alone decide hides the same keys in each call. Scores of hidden keys need not be
multiplied, nor values that weigh nothing, and a key that no query sees need not be read. What is counted are pairs of
a query and a key, not the blocks in which a kernel takes them, so that it stays a lower bound. `Kernel.flops` is the
work that kernels of ours are described by; it and this agree wherever a mask is a band around the diagonal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engine.ir.attention import AttentionChain, attention_chain, steps_to_scores
from engine.ir.attention_mask import FAR_BELOW, read_masking
from engine.ir.extern import CONVOLUTION
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.measures import count_written_bytes, input_bytes, op_flops
from engine.ir.ops import OP_CLASS, OpClass
from engine.ir.plan import Grouping
from engine.ir.positions import MOST_ELEMENTS, Array, position_values


@dataclass(frozen=True, slots=True)
class Visible:
    """Shares, 0 to 1: of the (query, key) pairs that are visible, of the queries that see a key, and of the keys that a
    query sees."""

    pairs: float = 1.0
    rows: float = 1.0
    keys: float = 1.0

    def both(self, other: Visible) -> Visible:
        return Visible(min(self.pairs, other.pairs), min(self.rows, other.rows), min(self.keys, other.keys))


WHOLE = Visible()


@dataclass(frozen=True, slots=True)
class Needed:
    """`products` are the operations of each matmul and convolution, by op index; the bytes are those of memory."""

    products: dict[int, float]
    read_bytes: int
    written_bytes: int


def needed_work(body: Graph) -> Needed:
    """What no schedule of the body can leave out."""
    users = _users(body)
    scores, values = _masked_products(body, users)
    share = _needed_shares(body, scores, values)
    products: dict[int, float] = {}
    for index, op in enumerate(body.ops):
        if op.kind == "matmul" or op.attribute("op") == CONVOLUTION:
            seen = [found[index].pairs for found in (scores, values) if index in found]
            products[index] = op_flops(body, op) * min((share[index], *seen))
    read = 0.0
    for index, size in zip(body.inputs, input_bytes(body), strict=True):
        alone = _masked_alone(body, index, users)
        read += size * min(share[index], _visible(body, alone).pairs if alone is not None else 1.0)
    return Needed(products, int(read), count_written_bytes(body))


def fewest_bytes(work: Kernel | Grouping) -> int:
    """Bytes of device memory that a kernel, or a plan's kernels one after the other, read and write at least."""
    kernels = (work,) if isinstance(work, Kernel) else tuple(call.kernel for call in work.calls)
    needs = {kernel.key: needed_work(kernel.body) for kernel in kernels}
    return sum(needs[kernel.key].read_bytes + needs[kernel.key].written_bytes for kernel in kernels)


def _masked_products(body: Graph, users: list[set[int]]) -> tuple[dict[int, Visible], dict[int, Visible]]:
    """What is visible of matmuls that give masked scores, and of those that weigh values with them."""
    scores: dict[int, Visible] = {}
    values: dict[int, Visible] = {}
    matmuls = [index for index, op in enumerate(body.ops) if op.kind == "matmul"]
    for index in matmuls:
        chain = attention_chain(body, index)
        if chain is not None:
            seen = values[index] = _visible(body, chain)
            inside = {chain.scores, *chain.path} - {chain.logits}
            if all(users[i] <= chain.ops and i not in body.outputs for i in inside):
                scores[chain.scores] = seen
    for index in matmuls:
        alone = _masked_alone(body, index, users) if index not in scores else None
        if alone is not None:
            scores[index] = _visible(body, alone)
    return scores, values


def _users(body: Graph) -> list[set[int]]:
    users: list[set[int]] = [set() for _ in body.ops]
    for index, op in enumerate(body.ops):
        for source in op.inputs:
            users[source].add(index)
    return users


def _masked_alone(body: Graph, first: int, users: list[set[int]]) -> AttentionChain | None:
    """Scores that op `first` computes or loads, and the pointwise ops of their shape that each alone read the one
    before, as a chain that ends in its logits; None where there are none."""
    shape = body.ops[first].out.shape
    last, path = first, set[int]()
    while len(shape) > 1 and len(users[last]) == 1 and last not in body.outputs:
        (user,) = users[last]
        if OP_CLASS[body.ops[user].kind] is not OpClass.POINTWISE or body.ops[user].out.shape != shape:
            break
        path.add(user)
        last = user
    ops = frozenset({first, *path})
    return AttentionChain(first, last, last, last, last, last, frozenset(path), ops) if path else None


def _visible(body: Graph, chain: AttentionChain) -> Visible:
    """From the bounds that the mask's comparisons are, and where these don't say all of it, from its values."""
    masking = read_masking(body, chain)
    rows, keys = body.ops[chain.logits].out.shape[-2:]
    if not body.ops[chain.logits].out.numel:
        return WHOLE
    bounds = masking.bounds
    found = Visible(
        bounds.pairs(rows, keys) / (rows * keys),
        bounds.rows_seeing(rows, keys) / rows,
        bounds.keys_seen(rows, keys) / keys,
    )
    return found if bounds.exact else found.both(_visible_by_values(body, chain))


def _visible_by_values(body: Graph, chain: AttentionChain) -> Visible:
    """A key that one mask gives -inf is out; one with a finite number far below, where every query sees another key.

    The arrays stay as small as they are: each element stands for as many pairs as any other.
    """
    certain, far = np.zeros((1, 1), bool), np.zeros((1, 1), bool)
    masks, all_known = _masks(body, chain)
    if math.prod(np.broadcast_shapes(*(one.shape for mask in masks for one in mask))) > MOST_ELEMENTS:
        return WHOLE
    for hidden, fill in masks:
        certain = certain | (hidden & (fill == -np.inf))
        far = far | (hidden & (fill <= FAR_BELOW))
    shown = ~far if all_known and not far.all(axis=-1).any() else ~certain
    return Visible(float(shown.mean()), float(shown.any(axis=-1).mean()), float(shown.any(axis=-2).mean()))


def _masks(body: Graph, chain: AttentionChain) -> tuple[list[tuple[Array, Array]], bool]:
    """(where it puts a number in a score's place or adds one, that number) of each mask between logits and scores whose
    values are known, down to an op that may make something else of it; and whether there is no other mask. Arrays have
    two axes at least."""
    found: list[tuple[Array, Array]] = []
    left = set(chain.path)
    for step in steps_to_scores(body, chain):
        op, position = step.op, step.position
        if position is None or op.kind not in ("where", "add", "cast", "copy"):
            break
        if op.kind == "add":
            other = _known(body, step.other)
            known = [np.ones((1, 1), bool), *other] if other else []
        else:
            known = _known(body, op.inputs[0], op.inputs[3 - position]) if op.kind == "where" and position else []
        if known:
            found.append((~known[0] if op.kind == "where" and position == 1 else known[0], known[1]))
        if known or op.kind in ("cast", "copy"):
            left.discard(step.index)
    return found, not any(body.ops[one].kind in ("where", "add") for one in left)


def _known(body: Graph, *indices: int) -> list[Array]:
    """Their values, with two axes at least; empty unless all are known."""
    found = [position_values(body, index) for index in indices]
    known = [one.reshape((1,) * max(2 - one.ndim, 0) + one.shape) for one in found if one is not None]
    return known if len(known) == len(found) else []


def _needed_shares(body: Graph, scores: dict[int, Visible], values: dict[int, Visible]) -> list[float]:
    """The share of each op's elements that somebody needs, from the outputs down. What feeds keys and values alone is
    needed for the keys that are seen, what feeds queries alone for the queries that see one."""
    share = [0.0] * len(body.ops)
    for index in body.outputs:
        share[index] = 1.0
    for index in range(len(body.ops) - 1, -1, -1):
        op = body.ops[index]
        left = right = share[index]
        if op.kind == "matmul":
            seen = scores.get(index, WHOLE)
            left, right = min(left, seen.rows), min(seen.keys, values.get(index, WHOLE).keys)
        for position, source in enumerate(op.inputs):
            share[source] = max(share[source], right if position else left)
    return share
