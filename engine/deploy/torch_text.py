"""A graph as lines of Python that call torch: what is computed once of weights, and a library's calls.

The lines do what `engine.runtime.reference` does op by op, each in its own dtype. Names come from positions; of what a
database holds, only numbers, names of dtypes and ops of the fixed lists reach the text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from engine.ir.extern import EXTERN_OPS, TEXTS, read_arguments
from engine.ir.graph import DTYPE_BYTES, Graph, Op
from engine.ir.ops import OP_CLASS, OpClass

_FUNCTIONS = {
    "silu": "torch.nn.functional.silu({})",
    "gelu": "torch.nn.functional.gelu({})",
    "gelu_tanh": 'torch.nn.functional.gelu({}, approximate="tanh")',
    "copy": "torch.clone({})",
}
"""Pointwise kinds whose function isn't torch's of the same name."""


def graph_lines(graph: Graph, inputs: Sequence[str], device: str) -> tuple[list[str], list[str]]:
    """Statements that compute the graph of the tensors named `inputs`, and the expressions of its outputs.

    `device` is an expression of where values that come from no input are made. An input is a tensor with the strides
    and offset of its spec, counted from its own storage.
    """
    lines: list[str] = []
    names: dict[int, str] = dict(zip(graph.inputs, inputs, strict=True))
    for index, op in enumerate(graph.ops):
        if op.kind == "input":
            continue
        names[index] = f"v{index}"
        lines.append(f"v{index} = {_op_text(graph, op, names, device)}")
    return lines, [names[index] for index in graph.outputs]


def dtype_text(dtype: str) -> str:
    """`torch.` and the dtype's name, from the fixed list. Raises KeyError for another text."""
    if dtype not in DTYPE_BYTES:
        raise KeyError(dtype)
    return f"torch.{dtype}"


def number_text(value: float | bool) -> str:
    """A number as Python writes it; one that has no literal as a call of float."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value!r}")'
    return repr(value)


def _op_text(graph: Graph, op: Op, names: dict[int, str], device: str) -> str:
    out = dtype_text(op.out.dtype)
    inputs = [names[i] for i in op.inputs]
    kind = OP_CLASS[op.kind]
    if op.kind == "view":
        source = graph.ops[op.inputs[0]]
        if source.kind in ("input", "view"):
            shift = op.out.offset - source.out.offset
            spec = f"{tuple(op.out.shape)}, {tuple(op.out.strides)}"
            return f"{inputs[0]}.as_strided({spec}, {inputs[0]}.storage_offset() + {int(shift)})"
        spec = f"{tuple(op.out.shape)}, {tuple(op.out.strides)}"
        read = f"(lambda x: x.as_strided({spec}, x.storage_offset() + {int(op.out.offset)}))"
        return f"{read}({inputs[0]}.contiguous())"
    if op.kind == "constant":
        return f"torch.tensor({number_text(op.attribute('value'))}, dtype={out}, device={device})"
    if op.kind == "iota":
        return f"torch.arange({op.out.numel}, dtype={out}, device={device}).view({tuple(op.out.shape)})"
    if kind is OpClass.REINDEX:
        return _reindex_text(op, inputs, graph)
    if kind is OpClass.EXTERN:
        return f"{_extern_text(op, inputs)}.contiguous().to({out})"
    if kind is OpClass.CONTRACTION:
        wider = op.out.element_bytes > graph.ops[op.inputs[0]].out.element_bytes
        operands = ", ".join(f"{name}.to({out})" if wider else name for name in inputs)
        return f"torch.matmul({operands}).to({out})"
    if kind is OpClass.REDUCTION:
        axes = tuple(int(axis) for axis in op.attribute("axes"))
        if op.kind in ("sum", "mean"):
            return f"torch.{op.kind}({inputs[0]}, dim={axes}, keepdim=True, dtype={out})"
        return f"torch.{op.kind}({inputs[0]}, dim={axes}, keepdim=True).to({out})"
    return f"{_pointwise_text(op, inputs, out)}.expand({tuple(op.out.shape)})"


def _pointwise_text(op: Op, inputs: list[str], out: str) -> str:
    if op.kind == "cast":
        return f"{inputs[0]}.to({out})"
    if op.kind in ("maximum", "minimum"):
        inputs = [f"{name}.to({out})" for name in inputs]
    return _FUNCTIONS.get(op.kind, f"torch.{op.kind}({{}})").replace("{}", ", ".join(inputs)) + f".to({out})"


def _reindex_text(op: Op, inputs: list[str], graph: Graph) -> str:
    if op.kind == "gather":
        return f"{inputs[0]}[torch.remainder({inputs[1]}.to(torch.int64), {inputs[0]}.shape[0])]"
    axis = int(op.attribute("axis"))
    if op.kind == "roll":
        return f"torch.roll({inputs[0]}, {-int(op.attribute('shift'))}, {axis})"
    dtypes = [graph.ops[i].out.dtype for i in op.inputs]
    widest = dtype_text("float64" if "float64" in dtypes else dtypes[0])
    return f"torch.cat([{', '.join(f'{name}.to({widest})' for name in inputs)}], {axis})"


def _extern_text(op: Op, inputs: list[str]) -> str:
    name = str(op.attribute("op"))
    if name not in EXTERN_OPS:
        raise KeyError(name[:60])
    _, packet, overload = name.split(".")
    args, kwargs = read_arguments(str(op.attribute("arguments")))
    words = [_argument_text(value, inputs) for value in args]
    words += [f"**{{{name!r}: {_argument_text(value, inputs)}}}" for name, value in kwargs.items()]
    place = op.attribute("result", None)
    return f"torch.ops.aten.{packet}.{overload}({', '.join(words)})" + ("" if place is None else f"[{int(place)}]")


def _argument_text(value: Any, inputs: list[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_argument_text(item, inputs) for item in value)}]"
    if isinstance(value, dict):
        return inputs[int(value["tensor"])] if "tensor" in value else dtype_text(value["dtype"])
    if value is None or isinstance(value, bool | int | float):
        return "None" if value is None else number_text(value)
    if value in TEXTS:
        return repr(value)
    raise KeyError(str(value)[:40])
