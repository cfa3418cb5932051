"""ATen ops that run as they are: what an `extern` op of a graph calls.

A call comes from a fixed list, and its result's shape is computed without memory before it is computed at all, so
that a body from a database can't ask for more than it says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from engine.ir.extern import EXTERN_OPS, read_arguments
from engine.ir.graph import Op
from engine.ir.shapes import GraphError


def call_extern(op: Op, inputs: Sequence[torch.Tensor], raised: torch.dtype | None = None) -> torch.Tensor:
    """The contiguous result of the ATen op that `op` names, for its inputs.

    With `raised`, floating dtypes among the arguments are replaced by it. Raises GraphError when the op isn't in the
    list, its arguments aren't the op's, or its result hasn't the shape that the graph says.
    """
    function = _resolve(str(op.attribute("op")))
    args, kwargs = read_arguments(str(op.attribute("arguments")))
    outlines = [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta") for x in inputs]
    outline = _one(_call(function, args, kwargs, outlines, raised), op)
    if not isinstance(outline, torch.Tensor) or tuple(outline.shape) != op.out.shape:
        raise GraphError(f"{op.attribute('op')} doesn't give shape {op.out.shape}")
    done: torch.Tensor = _one(_call(function, args, kwargs, inputs, raised), op)
    return done.contiguous()


def _one(results: Any, op: Op) -> Any:
    """The result of a call that the op stands for; None where the call has no such result."""
    place = op.attribute("result", None)
    if place is None or not isinstance(results, tuple):
        return results if place is None else None
    return results[int(place)] if int(place) < len(results) else None


def _resolve(name: str) -> Callable[..., Any]:
    if name not in EXTERN_OPS:
        raise GraphError(f"{name[:60]!r} is not in the list of ATen ops")
    _, packet, overload = name.split(".")
    found: Callable[..., Any] = getattr(getattr(torch.ops.aten, packet), overload)
    return found


def _call(
    function: Callable[..., Any],
    args: list[Any],
    kwargs: dict[str, Any],
    inputs: Sequence[torch.Tensor],
    raised: torch.dtype | None,
) -> Any:
    try:
        return function(
            *(_filled(value, inputs, raised) for value in args),
            **{name: _filled(value, inputs, raised) for name, value in kwargs.items()},
        )
    except (RuntimeError, TypeError, IndexError, NotImplementedError) as error:
        first = str(error).strip().splitlines()
        raise GraphError(f"{function} can't be called so: {first[0][:200] if first else error!r}") from None


def _filled(value: Any, inputs: Sequence[torch.Tensor], raised: torch.dtype | None) -> Any:
    if isinstance(value, list):
        return [_filled(item, inputs, raised) for item in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return inputs[value["tensor"]]
    dtype: torch.dtype = getattr(torch, value["dtype"])
    return raised if raised is not None and dtype.is_floating_point else dtype
