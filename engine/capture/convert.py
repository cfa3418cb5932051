"""A torch.export program as a graph of ours.

Placeholders become inputs in the order in which they are first typed; a tensor that the program creates while it
runs with values that nobody chose (a random or an empty one) is an input too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node

from engine.capture.aten import HANDLERS
from engine.capture.calls import call, is_callable
from engine.capture.errors import NoTensorInputError, UnsupportedOpError, UnsupportedTensorError
from engine.capture.feeding import part_name
from engine.capture.lowering import Lowering, Value
from engine.ir.graph import DTYPE_BYTES, Graph, TensorSpec
from engine.ir.shapes import GraphError, OpError

_CREATED = frozenset({"rand", "randn", "randint", "randperm", "empty", "empty_strided", "normal"})
_NO_MATTER = frozenset({"dtype", "device", "layout", "pin_memory"})
"""Named arguments that say nothing which the result doesn't."""
_IGNORED = frozenset({"_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range_for_size"})


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """Shape, dtype, strides and offset (elements) of a tensor; a dtype's name is torch's."""
    strides = tuple(0 if extent == 1 else stride for extent, stride in zip(tensor.shape, tensor.stride(), strict=True))
    fresh = TensorSpec(tuple(tensor.shape), dtype_of(tensor), strides, int(tensor.storage_offset()))
    plain = TensorSpec.contiguous(fresh.shape, fresh.dtype)
    return plain if fresh.is_contiguous else fresh


def dtype_of(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def convert(
    program: ExportedProgram,
    inputs: Mapping[str, tuple[str, torch.Tensor]],
    allow_tf32: bool,
    keep_unread: bool = True,
    also_weights: frozenset[str] = frozenset(),
    own_inputs: bool = False,
) -> Graph:
    """The graph of a program in core ATen. `inputs` gives each user input's label and tensor by placeholder name.
    Without `keep_unread`, inputs that no op reads are left out. `also_weights` are placeholders that never change
    between calls, besides the parameters and buffers. With `own_inputs` the program made its inputs, and writes to them
    for itself; else whoever called it would miss what it wrote.

    Raises UnsupportedOpError, UnsupportedTensorError or NoTensorInputError.
    """
    low = Lowering(allow_tf32)
    values: dict[Node, Any] = {}
    labels = _labels(program)
    # What orders side effects: it holds nothing, and no op that has one is converted.
    fixed = (InputKind.PARAMETER, InputKind.BUFFER)
    weights = {str(getattr(s.arg, "name", "")) for s in program.graph_signature.input_specs if s.kind in fixed}
    weights |= also_weights
    tokens = {str(getattr(s.arg, "name", "")) for s in program.graph_signature.input_specs if s.kind is InputKind.TOKEN}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            if node.name in tokens:
                continue
            label, tensor = inputs.get(node.name) or (labels.get(node.name, node.name), node.meta["val"])
            if isinstance(tensor, torch.Tensor):
                values[node] = low.input(spec_of(tensor), label, node.name in weights)
        elif node.op == "call_function":
            values[node] = _lower(low, node, values)
        elif node.op == "get_attr":
            raise UnsupportedOpError(f"A nested graph ({node.target}) is not supported: no control flow on tensors.")
    refuse_writes(program, own_inputs)
    graph = _finish(low, program, values)
    return graph if keep_unread else _without_unread(graph)


def created_in(program: ExportedProgram) -> str:
    """The first op that creates a tensor with values that nobody chose; "" if there is none."""
    names = [_name(node) for node in program.graph.nodes if node.op == "call_function"]
    return next((name for name in names if name in _CREATED), "")


def _without_unread(graph: Graph) -> Graph:
    read = {i for op in graph.ops for i in op.inputs} | set(graph.outputs)
    kept = [i for i, op in enumerate(graph.ops) if op.kind != "input" or i in read]
    where = {old: new for new, old in enumerate(kept)}
    ops = tuple(replace(graph.ops[i], inputs=tuple(where[j] for j in graph.ops[i].inputs)) for i in kept)
    inputs = tuple(where[i] for i in graph.inputs if i in where)
    labels = tuple(label for label, i in zip(graph.labels, graph.inputs, strict=True) if i in where)
    marked = [i for position, i in enumerate(graph.inputs) if position in graph.weights]
    weights = tuple(position for position, i in enumerate(i for i in graph.inputs if i in where) if i in marked)
    return Graph(ops, inputs, tuple(where[i] for i in graph.outputs), labels, weights)


def _lower(low: Lowering, node: Node, values: dict[Node, Any]) -> Any:
    name = _name(node)
    if name == "getitem":
        source, position = node.args
        assert isinstance(source, Node)
        return values[source][position]
    if name in _IGNORED:
        return None
    meta = node.meta.get("val")
    first = meta[0] if isinstance(meta, list | tuple) else meta
    if name in _CREATED and isinstance(first, torch.Tensor):
        return low.input(spec_of(first), node.name)
    handler = HANDLERS.get(name)
    if (handler is None and not is_callable(node)) or not isinstance(first, torch.Tensor):
        raise UnsupportedOpError(f"aten.{name} is not supported yet: no kernel is generated for it.")
    if 0 in first.shape:
        raise UnsupportedTensorError(f"The result of aten.{name} has no elements: there is nothing to tune.")
    arguments = torch.fx.map_arg(node.args, values.__getitem__)
    options = torch.fx.map_arg({k: v for k, v in node.kwargs.items() if k not in _NO_MATTER}, values.__getitem__)
    try:
        if handler is None:
            return call(low, node, arguments, options, _specs(meta))
        done = handler(low, dtype_of(first), *arguments, **options)
    except UnsupportedOpError:
        if not is_callable(node):
            raise
        return call(low, node, arguments, options, _specs(meta))
    except TypeError:
        raise UnsupportedOpError(f"{node.target} as it is called here is not supported: no kernel does that.") from None
    except GraphError as error:
        raise UnsupportedOpError(f"{node.target} as it is called here is not supported: {error}.") from None
    if isinstance(done, Value) and done.shape != tuple(first.shape):
        raise UnsupportedOpError(f"{node.target} gives shape {tuple(first.shape)}, and was read as {done.shape}.")
    return done


def _specs(results: Any) -> list[TensorSpec | None]:
    """The spec of each result of a call; None for what is no tensor, or one of no elements or of another dtype."""
    listed = results if isinstance(results, list | tuple) else [results]
    specs = [spec_of(result) if isinstance(result, torch.Tensor) else None for result in listed]
    return [spec if spec is not None and spec.numel and spec.dtype in DTYPE_BYTES else None for spec in specs]


def _name(node: Node) -> str:
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return str(getattr(node.target, "__name__", node.target))
    space, _, name = str(schema.name).partition("::")
    return name if space == "aten" else f"{space}.{name}"


def _labels(program: ExportedProgram) -> dict[str, str]:
    """Names of what isn't a user input, by placeholder; a tensor that the code closes over has only a number."""
    labels: dict[str, str] = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
            labels[str(getattr(spec.arg, "name", ""))] = part_name(spec.target)
        elif spec.kind is InputKind.CONSTANT_TENSOR:
            labels[str(getattr(spec.arg, "name", ""))] = f"captured{len(labels)}"
    return labels


def refuse_writes(program: ExportedProgram, own_inputs: bool = False) -> None:
    """Raises UnsupportedOpError for a call that writes to a buffer, or to an argument that isn't its own."""
    for spec in program.graph_signature.output_specs:
        if spec.kind is OutputKind.BUFFER_MUTATION:
            part = part_name(spec.target)
            raise UnsupportedOpError(f"The call changes the buffer {part}: call .eval() on the module first.")
        if spec.kind is OutputKind.USER_INPUT_MUTATION and not own_inputs:
            raise UnsupportedOpError(
                "The call changes one of its arguments in place, which kernels here don't: return the new value."
            )


def _finish(low: Lowering, program: ExportedProgram, values: dict[Node, Any]) -> Graph:
    (output,) = [node for node in program.graph.nodes if node.op == "output"]
    returned: list[int] = []
    for spec, node in zip(program.graph_signature.output_specs, output.args[0], strict=True):
        if spec.kind is OutputKind.USER_OUTPUT and node is not None:
            value = values.get(node) if isinstance(node, Node) else None
            if not isinstance(value, Value):
                raise UnsupportedTensorError(f"The call returns {node!r}, which is not a tensor.")
            returned.append(low.stored(value))
    if not returned:
        raise UnsupportedTensorError("The call returns no tensor.")
    try:
        graph = low.builder.build(*returned)
    except OpError as error:
        raise UnsupportedOpError(f"The {error.kind} of the program is not supported: {error.cause}.") from None
    except GraphError as error:
        raise UnsupportedOpError(f"The program is not supported: {error}.") from None
    if not graph.inputs:
        raise NoTensorInputError("The call reads no tensor: create one inside it, e.g. torch.relu(torch.randn(8, 8)).")
    if all(op.kind in ("input", "constant", "view") for op in graph.ops):
        raise NoTensorInputError("The call computes nothing: there is no kernel to tune.")
    return graph
