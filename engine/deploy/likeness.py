"""Whether a captured graph does what the call itself does: eager's own values, beside those of the graph.

While a call is captured, its tensors are stand-ins. Code that asks for a tensor's type, or whether it is compiled, may
take another branch then, and what is captured is another function. Its kernels are right for the graph, so only
eager's values tell. They are near what the graph gives when each op rounds in its own dtype, or near the graph in a
wider dtype, as fused code of torch's rounds less.

A limit is far above rounding and far below what another branch gives. Where the graph's own rounding moves an output by
much, the limit is wider, up to a cap; where an output hangs on a comparison of computed values, single elements may be
others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from engine.ir.graph import Graph, Op
from engine.ir.ops import OP_CLASS, OpClass
from engine.measure.gate import FACTOR
from engine.runtime import compare, evaluate

OTHER_BRANCH = "its capture does something else than the call itself (it may ask for a tensor's type)"
"""What a person is told of a graph that isn't the call."""

NOISE, NOTHING = 16.0, 100.0
"""Steps from 0 within which an output may be what rounding leaves of ones, and times that it is larger than it should
be."""

_Plain = int | float | complex | str | bytes | type | torch.Size | torch.dtype | torch.device | None
_MOVES_VALUES = frozenset({OpClass.INPUT, OpClass.CONSTANT, OpClass.VIEW, OpClass.GENERATOR, OpClass.REINDEX})
_STEPS = frozenset({"floor", "ceil", "sign"})


@dataclass(frozen=True, slots=True)
class Limits:
    """How far eager may be off: the norm and the worst element as `compare` gives them, each with the cap of what the
    graph's rounding widens it to, and the share of elements that a comparison may decide otherwise. `step` is the
    distance of 1 from the next number."""

    norm: float
    norm_cap: float
    worst: float
    worst_cap: float
    flipped: float
    step: float


HALVES = Limits(norm=2e-2, norm_cap=0.25, worst=0.25, worst_cap=0.4, flipped=0.05, step=2.0**-7)
SINGLES = Limits(norm=1e-3, norm_cap=0.05, worst=0.05, worst_cap=0.2, flipped=0.01, step=2.0**-23)
TF32 = Limits(norm=1e-2, norm_cap=0.05, worst=0.1, worst_cap=0.2, flipped=0.02, step=2.0**-10)
"""fp32 of which a GPU may round the operands of products to 11 bits, as the graph's own ops need not do."""


def is_the_call(
    graph: Graph, tensors: Sequence[torch.Tensor], eager: Sequence[torch.Tensor], references: Sequence[torch.Tensor]
) -> bool:
    """Whether eager's outputs for `tensors` are those of `graph`; `references` are the graph's in a wider dtype."""
    limits = limits_of(graph, tensors[0].device.type if tensors else "cpu")
    flips = _flipping(graph)
    far = [
        i
        for i, pair in enumerate(compare(eager, references))
        if not _is_near(pair, eager[i], limits, flips[i], (0.0, 0.0))
    ]
    if not far:
        return True
    own = evaluate(graph, tensors, None)
    return all(_is_alike(eager[i], own[i], references[i], limits, flips[i]) for i in far)


def _is_alike(eager: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, limits: Limits, flips: bool) -> bool:
    (rounded,) = compare([own], [reference])
    if _is_noise(eager, own, reference, limits):
        return True
    moved = (0.0, 0.0) if any(map(math.isnan, rounded)) else rounded
    return any(_is_near(compare([eager], [other])[0], eager, limits, flips, moved) for other in (own, reference))


def _is_noise(eager: torch.Tensor, own: torch.Tensor, reference: torch.Tensor, limits: Limits) -> bool:
    """Whether nothing but rounding is left in the graph's own output, of what is 1 or so, and no more in eager's."""
    if not eager.is_floating_point() or eager.numel() == 0:
        return False
    size = float(torch.linalg.vector_norm(own, dtype=torch.float64)) / math.sqrt(own.numel())
    if not size <= NOISE * limits.step:
        return False
    one, other, exact = (value.double() for value in (eager, own, reference))
    moved = float((other - exact).norm())
    return NOTHING * float(exact.norm()) <= moved and float((one - exact).norm()) <= FACTOR * moved


def _is_near(
    found: tuple[float, float], eager: torch.Tensor, limits: Limits, flips: bool, moved: tuple[float, float]
) -> bool:
    """NaN is near to nothing."""
    norm, worst = found
    if not eager.is_floating_point():
        return norm <= (limits.flipped if flips else 0.0)
    near = norm <= min(max(limits.norm, FACTOR * moved[0]), limits.norm_cap)
    return near and (flips or worst <= min(max(limits.worst, FACTOR * moved[1]), limits.worst_cap))


def limits_of(graph: Graph, device: str) -> Limits:
    """Those of the coarsest dtype that anything in the graph has."""
    kinds = {getattr(torch, op.out.dtype) for op in graph.ops}
    if any(kind.is_floating_point and kind.itemsize < torch.float32.itemsize for kind in kinds):
        return HALVES
    return TF32 if device == "cuda" and any(map(_may_round, graph.ops)) else SINGLES


def _may_round(op: Op) -> bool:
    return op.kind == "extern" or (op.kind == "matmul" and bool(op.attribute("allow_tf32")))


def _flipping(graph: Graph) -> list[bool]:
    """For each output, whether rounding may make single elements of it others altogether: it hangs on whole numbers or
    truth values that are made of floating values which were computed."""
    rounded: list[bool] = []
    flips: list[bool] = []
    for op in graph.ops:
        floating = getattr(torch, op.out.dtype).is_floating_point
        of_rounded = any(rounded[i] for i in op.inputs)
        stepped = of_rounded and (not floating or op.kind in _STEPS) and op.kind != "isnan"
        flips.append(stepped or any(flips[i] for i in op.inputs))
        rounded.append(floating and (of_rounded or OP_CLASS[op.kind] not in _MOVES_VALUES))
    return [flips[i] for i in graph.outputs]


def tensors_of(returned: Any) -> list[torch.Tensor]:
    """The tensors in what a call returns, in order."""
    return [leaf for leaf in pytree.tree_leaves(returned) if isinstance(leaf, torch.Tensor)]


def same_values(ours: Any, eager: Any) -> bool:
    """Whether two results lie alike, and have equal plain values beside their tensors; of other objects, the type
    counts."""
    (one, shape), (other, wanted) = (pytree.tree_flatten(each, is_leaf=_is_size) for each in (ours, eager))
    return bool(shape == wanted) and all(map(_same_value, one, other))


def _is_size(one: Any) -> bool:
    return isinstance(one, torch.Size)


def _same_value(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return True
    if type(one) is not type(other):
        return False
    return not isinstance(one, _Plain) or one == other or (one != one and other != other)
