"""ATen ops that no kernel is generated for, as calls: `extern` ops of our graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node

from engine.capture.lowering import Lowering, Value
from engine.ir.extern import EXTERN_OPS, arguments_to_json
from engine.ir.graph import TensorSpec


def is_callable(node: Node) -> bool:
    """Whether the op of a node is in the list of those that may be called as they are."""
    return _full_name(node) in EXTERN_OPS


def call(
    low: Lowering, node: Node, args: Sequence[Any], kwargs: Mapping[str, Any], outs: Sequence[TensorSpec | None]
) -> Value | tuple[Value | None, ...]:
    """The op of `node` as a call that gives `outs`, contiguous: a value, or one for each of several results, and None
    for a result that is no tensor of ours. Raises GraphError for an argument that isn't data."""
    name, named = _full_name(node), dict(kwargs)
    if isinstance(node.kwargs.get("dtype"), torch.dtype):
        named["dtype"] = node.kwargs["dtype"]
    if not isinstance(node.meta["val"], list | tuple):
        assert outs[0] is not None
        return call_named(low, name, args, named, outs[0])
    return tuple(
        None if out is None else call_named(low, name, args, named, out, place) for place, out in enumerate(outs)
    )


def call_named(
    low: Lowering,
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    out: TensorSpec,
    result: int | None = None,
) -> Value:
    """A call of the op `name`, one of EXTERN_OPS, that gives `out`, contiguous, as its `result` among several."""
    inputs: list[int] = []
    listed = [_written(low, value, inputs) for value in args]
    named = {key: _written(low, value, inputs) for key, value in kwargs.items()}
    text = arguments_to_json(listed, named)
    done = low.builder.extern(name, tuple(inputs), text, TensorSpec.contiguous(out.shape, out.dtype), result)
    return Value(done, out.shape)


def _written(low: Lowering, value: Any, inputs: list[int]) -> Any:
    if isinstance(value, Value):
        stored = low.stored(value)
        if stored not in inputs:
            inputs.append(stored)
        return {"tensor": inputs.index(stored)}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    return [_written(low, item, inputs) for item in value] if isinstance(value, list | tuple) else value


def _full_name(node: Node) -> str:
    return str(node.target) if isinstance(node.target, torch._ops.OpOverload) else ""
