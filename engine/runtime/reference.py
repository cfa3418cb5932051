"""What a body means: the graph op by op in torch, in higher precision or as eager runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from engine.ir.graph import Graph, Op
from engine.ir.ops import OP_CLASS, OpClass

_POINTWISE: dict[str, Callable[..., torch.Tensor]] = {
    "neg": torch.neg,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "log": torch.log,
    "log2": torch.log2,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "erf": torch.erf,
    "sin": torch.sin,
    "cos": torch.cos,
    "abs": torch.abs,
    "sign": torch.sign,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "logical_not": torch.logical_not,
    "isnan": torch.isnan,
    "cast": lambda x: x,
    "copy": torch.clone,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "pow": torch.pow,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "where": torch.where,
}
_REDUCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "amin": torch.amin,
}


def evaluate(
    graph: Graph, tensors: Sequence[torch.Tensor], dtype: torch.dtype | None = torch.float64
) -> list[torch.Tensor]:
    """The outputs of `graph` for `tensors` (its inputs, in order), on the device where they are.

    With a dtype, every floating value is computed and returned in it, and a cast between floats changes nothing.
    With None, every op runs and rounds in its own dtype, which is what eager gives.
    """
    values: dict[int, torch.Tensor] = {}
    last = _last_readers(graph)
    given = dict(zip(graph.inputs, tensors, strict=True))
    for index, op in enumerate(graph.ops):
        values[index] = given[index] if op.kind == "input" else _evaluate_op(graph, op, index, values, given, dtype)
        for source in set(op.inputs):
            if last.get(source) == index:
                del values[source]
    return [_raised(values[index], dtype) for index in graph.outputs]


def _last_readers(graph: Graph) -> dict[int, int]:
    """For each op that is no output, the last op that reads it: its value is freed there."""
    last = {source: index for index, op in enumerate(graph.ops) for source in op.inputs}
    return {source: index for source, index in last.items() if source not in graph.outputs}


def _evaluate_op(
    graph: Graph,
    op: Op,
    index: int,
    values: dict[int, torch.Tensor],
    given: dict[int, torch.Tensor],
    dtype: torch.dtype | None,
) -> torch.Tensor:
    own = getattr(torch, op.out.dtype)
    out = dtype if dtype is not None and own.is_floating_point else own
    if op.kind == "view":
        return _view(graph, op, values)
    if op.kind == "constant":
        device = next(iter(given.values())).device if given else torch.device("cpu")
        return torch.tensor(op.attribute("value"), dtype=out, device=device)
    inputs = [_raised(values[i], dtype) for i in op.inputs]
    kind = OP_CLASS[op.kind]
    if kind is OpClass.CONTRACTION:
        return torch.matmul(*inputs).to(out)
    if kind is OpClass.REDUCTION:
        axes = tuple(op.attribute("axes"))
        if op.kind in ("sum", "mean"):
            return _REDUCTIONS[op.kind](inputs[0], dim=axes, keepdim=True, dtype=out)
        return _REDUCTIONS[op.kind](inputs[0], dim=axes, keepdim=True).to(out)
    weak = [graph.ops[i].kind == "constant" for i in op.inputs]
    return _pointwise(op, inputs, weak, out).expand(op.out.shape)


def _pointwise(op: Op, inputs: list[torch.Tensor], weak: list[bool], out: torch.dtype) -> torch.Tensor:
    """Beside a tensor a constant is a plain number, so it lifts no dtype and is not rounded to one."""
    if op.kind in ("maximum", "minimum"):
        inputs = [value.to(out) for value in inputs]
    elif op.kind in ("cast", "copy"):
        return inputs[0].to(out).clone() if op.kind == "copy" else inputs[0].to(out)
    arguments: list[torch.Tensor | int | float | bool] = list(inputs)
    if len(inputs) == 2 and op.kind not in ("maximum", "minimum") and any(weak) and not all(weak):
        arguments = [value.item() if is_weak else value for value, is_weak in zip(inputs, weak, strict=True)]
        if not isinstance(arguments[0], torch.Tensor) and op.kind != "pow":
            arguments[0] = inputs[0].to(inputs[1].dtype if inputs[0].dtype == inputs[1].dtype else inputs[0].dtype)
    return _POINTWISE[op.kind](*arguments).to(out)


def _view(graph: Graph, op: Op, values: dict[int, torch.Tensor]) -> torch.Tensor:
    """Re-read the storage of the source. Positions count from where the root's own storage starts."""
    source = values[op.inputs[0]]
    spec = op.out
    root = op.inputs[0]
    if graph.ops[root].kind == "input":
        start = source.storage_offset() - graph.ops[root].out.offset
        return source.as_strided(spec.shape, spec.strides, start + spec.offset)
    if graph.ops[root].kind == "view":
        start = source.storage_offset() - graph.ops[root].out.offset
        return source.as_strided(spec.shape, spec.strides, start + spec.offset)
    return source.contiguous().as_strided(spec.shape, spec.strides, spec.offset)


def _raised(value: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    return value.to(dtype) if dtype is not None and value.is_floating_point() else value
