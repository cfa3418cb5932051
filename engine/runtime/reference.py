"""What a body means: the graph op by op in torch, in higher precision or as eager runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from engine.ir.graph import Graph, Op
from engine.ir.ops import OP_CLASS, OpClass
from engine.runtime.extern import call_extern
from engine.runtime.memory import packed

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
        values[index] = given[index] if op.kind == "input" else _evaluate_op(graph, op, values, given, dtype)
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
    values: dict[int, torch.Tensor],
    given: dict[int, torch.Tensor],
    dtype: torch.dtype | None,
) -> torch.Tensor:
    own = getattr(torch, op.out.dtype)
    out = dtype if dtype is not None and own.is_floating_point else own
    if op.kind == "view":
        return _view(graph, op, values)
    if op.kind in ("constant", "iota"):
        device = next(iter(given.values())).device if given else torch.device("cpu")
        if op.kind == "iota":
            return torch.arange(op.out.numel, dtype=out, device=device).view(op.out.shape)
        return torch.tensor(op.attribute("value"), dtype=out, device=device)
    if OP_CLASS[op.kind] is OpClass.REINDEX:
        return _reindex(op, [values[i] for i in op.inputs])
    inputs = [_raised(values[i], dtype) for i in op.inputs]
    kind = OP_CLASS[op.kind]
    if kind is OpClass.EXTERN:
        return call_extern(op, inputs, dtype).to(out)
    if kind is OpClass.CONTRACTION:
        # A product that is wider than its operands is accumulated and kept wide.
        wider = out.itemsize > inputs[0].dtype.itemsize
        return torch.matmul(*(value.to(out) if wider else value for value in inputs)).to(out)
    if kind is OpClass.REDUCTION:
        axes = tuple(op.attribute("axes"))
        if op.kind in ("sum", "mean"):
            return _REDUCTIONS[op.kind](inputs[0], dim=axes, keepdim=True, dtype=out)
        return _REDUCTIONS[op.kind](inputs[0], dim=axes, keepdim=True).to(out)
    return _pointwise(op, inputs, out).expand(op.out.shape)


def _pointwise(op: Op, inputs: list[torch.Tensor], out: torch.dtype) -> torch.Tensor:
    """A constant is a tensor without axes, which torch promotes like a plain number."""
    if op.kind == "cast":
        return inputs[0].to(out)
    if op.kind in ("maximum", "minimum"):
        inputs = [value.to(out) for value in inputs]
    return _POINTWISE[op.kind](*inputs).to(out)


def _reindex(op: Op, inputs: list[torch.Tensor]) -> torch.Tensor:
    """Rows are gathered before they are raised: a table of embeddings is large, and few of its rows are read."""
    if op.kind == "gather":
        return inputs[0][torch.remainder(inputs[1].to(torch.int64), inputs[0].shape[0])]
    axis: int = op.attribute("axis")
    if op.kind == "roll":
        return torch.roll(inputs[0], -op.attribute("shift"), axis)
    widest = next((value.dtype for value in inputs if value.dtype == torch.float64), inputs[0].dtype)
    return torch.cat([value.to(widest) for value in inputs], axis)


def _view(graph: Graph, op: Op, values: dict[int, torch.Tensor]) -> torch.Tensor:
    """Re-read the storage of the source. Positions count from where the first source's own storage starts."""
    source, spec = graph.ops[op.inputs[0]], op.out
    value = values[op.inputs[0]]
    if source.kind not in ("input", "view"):
        return packed(value).as_strided(spec.shape, spec.strides, spec.offset)
    start = value.storage_offset() - source.out.offset
    return value.as_strided(spec.shape, spec.strides, start + spec.offset)


def _raised(value: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    return value.to(dtype) if dtype is not None and value.is_floating_point() else value
