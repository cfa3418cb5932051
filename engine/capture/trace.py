"""The user's code, run on tensors without memory, and exported.

Every tensor lives on torch's meta device, whatever device the text names: no CUDA is needed, nothing is allocated,
and a program that asks for a tensor's values is recognized. Tensors that the final call creates are taken
out of it first, so that they are its inputs and not a part of what is tuned.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from engine.capture.convert import convert
from engine.capture.errors import (
    CaptureError,
    DataDependentError,
    NoTensorInputError,
    UnsupportedOpError,
    UserCodeError,
)
from engine.capture.target import ParsedTarget
from engine.ir.plan import Program

_CREATORS = (
    *("randn", "rand", "randint", "randperm", "empty", "ones", "zeros", "full", "arange", "linspace", "eye"),
    *("tensor", "as_tensor", "empty_strided", "normal", "logspace"),
    *("randn_like", "rand_like", "randint_like", "empty_like", "ones_like", "zeros_like", "full_like"),
)
_CHAIN = frozenset(
    {
        *("to", "cuda", "cpu", "half", "bfloat16", "float", "double", "int", "long", "bool", "type", "contiguous"),
        *("t", "transpose", "permute", "view", "reshape", "expand", "unsqueeze", "squeeze", "flatten", "eval"),
        *("requires_grad_", "detach", "clone", "train", "swapaxes", "movedim"),
    }
)
_DATA_DEPENDENT = (
    *("meta tensors", "meta device type tensor", "data-dependent", "data-independent", "Could not guard"),
    "meta tensor; no data",
)
_KEPT_WHOLE = ("silu", "rms_norm")
"""Composite ops that have one name in our graphs, and lose it when torch decomposes them."""


def trace(target: ParsedTarget, device: str) -> Program:
    """Run the statements, export the call and convert it. Raises CaptureError."""
    devices: list[str] = []
    mode = _OnMeta(devices)
    with torch.no_grad(), mode, _user_code():
        namespace: dict[str, Any] = {"torch": torch, "F": nn.functional, "nn": nn, "math": math, "__name__": "__main__"}
        exec(compile(target.statements, "<code>", "exec"), namespace)
        call = _Call(target.call, namespace, devices)
        call(*(tensor for _, tensor in call.inputs))
    program = _export(call)
    given = {f"tensors_{i}": pair for i, pair in enumerate(call.inputs)}
    graph = convert(program, given, _allows_tf32())
    named = sorted(devices, key=lambda name: ":" not in name)
    return Program(graph, target.text, named[0] if named else device)


class _OnMeta(TorchFunctionMode):
    """Sends whatever the code creates or moves to the meta device, and remembers which GPU it named."""

    def __init__(self, devices: list[str]) -> None:
        super().__init__()
        self._devices = devices
        self._creators = {getattr(torch, name) for name in _CREATORS}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        options = {name: self._moved(value) for name, value in (kwargs or {}).items() if name != "generator"}
        if func in (torch.Tensor.cuda, torch.Tensor.cpu):
            self._note(func.__name__, args[1] if len(args) > 1 else options.get("device"))
            return args[0]
        if func in self._creators and options.get("device") is None:
            options["device"] = torch.device("meta")
        done = func(*(self._moved(value) for value in args), **options)
        if isinstance(done, torch.Tensor) and done.device.type != "meta":
            return done.to("meta")
        return done

    def _moved(self, value: Any) -> Any:
        if isinstance(value, str) and value.split(":")[0] in ("cuda", "cpu"):
            value = torch.device(value)
        if not isinstance(value, torch.device) or value.type == "meta":
            return value
        if value.type == "cuda":
            self._note("cuda", value)
        return torch.device("meta")

    def _note(self, kind: str, where: Any) -> None:
        if kind == "cuda":
            number = where if isinstance(where, int) and not isinstance(where, bool) else getattr(where, "index", None)
            self._devices.append("cuda" if number is None else f"cuda:{number}")


class _AnyGenerator(torch.Generator):
    """A generator for any device; random values are never drawn."""

    def __new__(cls, device: object = None) -> _AnyGenerator:
        make: Any = super().__new__
        return cast(_AnyGenerator, make(cls, device="cpu"))


class _Call(nn.Module):
    """The final call as a module: tensors that it names or creates are its inputs, modules are its submodules."""

    def __init__(self, text: str, namespace: dict[str, Any], devices: list[str]) -> None:
        super().__init__()
        self._devices = devices
        self._namespace = namespace
        taken = _TakeOut(namespace)
        expression = taken.visit_call(ast.parse(text, mode="eval").body)
        self.inputs = taken.tensors
        self._names = list(taken.names)
        self._code = compile(ast.fix_missing_locations(ast.Expression(expression)), "<code>", "eval")
        for label, module in taken.modules:
            self.add_module(label, module)

    def forward(self, *tensors: torch.Tensor) -> Any:
        with _OnMeta(self._devices):
            return eval(self._code, {**self._namespace, **dict(zip(self._names, tensors, strict=True))})


class _TakeOut(ast.NodeTransformer):
    """Replaces what a call creates by names, and collects the tensors and modules that it reads."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self.tensors: list[tuple[str, torch.Tensor]] = []
        self.names: list[str] = []
        self.modules: list[tuple[str, nn.Module]] = []

    def visit_call(self, call: ast.expr) -> ast.expr:
        """The final call itself computes; one that only creates is refused."""
        if self._creates(call):
            raise NoTensorInputError("The call only creates a tensor or a module: there is nothing to tune.")
        replaced = self.generic_visit(call)
        assert isinstance(replaced, ast.expr)
        return replaced

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and self._creates(node):
            try:
                made = eval(compile(ast.Expression(node), "<code>", "eval"), self._namespace)
            except NameError:
                return self.generic_visit(node)
            if isinstance(made, nn.Module):
                return self._take_module(node, f"{type(made).__name__.lower()}{len(self.modules)}", made)
            if isinstance(made, torch.Tensor):
                return self._take_tensor(node, f"_input{len(self.names)}", f"x{len(self.names)}", made)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            value = self._namespace.get(node.id)
            if isinstance(value, torch.Tensor) and node.id not in self.names:
                return self._take_tensor(node, node.id, node.id, value)
            if isinstance(value, nn.Module) and all(value is not module for _, module in self.modules):
                self.modules.append((node.id, value))
        return self.generic_visit(node)

    def _take_tensor(self, node: ast.expr, name: str, label: str, tensor: torch.Tensor) -> ast.Name:
        self.names.append(name)
        self.tensors.append((label, tensor.detach()))
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def _take_module(self, node: ast.expr, label: str, module: nn.Module) -> ast.Name:
        name = f"_module{len(self.modules)}"
        self._namespace[name] = module
        self.modules.append((label, module))
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def _creates(self, node: ast.expr) -> bool:
        """A call of a creating function or of a module class, or a change of layout, dtype or device of one."""
        if isinstance(node, ast.Attribute):
            return node.attr in ("T", "mT", "data") and self._creates(node.value)
        if isinstance(node, ast.Subscript):
            return self._creates(node.value)
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in _CHAIN and self._creates(node.func.value):
            return True
        made_by = self._resolve(node.func)
        if isinstance(made_by, type) and issubclass(made_by, nn.Module):
            return True
        return any(made_by is getattr(torch, name) for name in _CREATORS)

    def _resolve(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return self._namespace.get(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(self._resolve(node.value), node.attr, None)
        return None


def _export(call: _Call) -> torch.export.ExportedProgram:
    tensors = tuple(tensor for _, tensor in call.inputs)
    table: Any = torch.export.default_decompositions()
    for name in _KEPT_WHOLE:
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            table.pop(getattr(packet, overload), None)
    try:
        with torch.no_grad():
            exported = torch.export.export(call, tensors, strict=False)
            return cast(torch.export.ExportedProgram, exported.run_decompositions(table))
    except CaptureError:
        raise
    except Exception as error:
        if _is_data_dependent(error):
            raise DataDependentError(_DATA_TEXT) from None
        raise UnsupportedOpError(f"torch.export can't capture the call: {_one_line(error)}.") from None


_DATA_TEXT = "The code asks for the values of a tensor (an `if` on one, .item(), nonzero): only shapes are known here."


@contextmanager
def _user_code() -> Iterator[None]:
    """Turns whatever the user's code raises into one sentence, and lets it make generators for a GPU."""
    made = torch.Generator
    torch.__dict__["Generator"] = _AnyGenerator
    try:
        yield
    except CaptureError:
        raise
    except (Exception, SystemExit) as error:
        if _is_data_dependent(error):
            raise DataDependentError(_DATA_TEXT) from None
        raise UserCodeError(f"The code raised {_one_line(error)}.") from None
    finally:
        torch.__dict__["Generator"] = made


def _is_data_dependent(error: BaseException) -> bool:
    return type(error).__name__ in ("DataDependentOutputException", "GuardOnDataDependentSymNode") or any(
        text in str(error) for text in _DATA_DEPENDENT
    )


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
    return text.rstrip(".")


def _allows_tf32() -> bool:
    """Whether the code allowed TF32 for fp32 matmuls; torch has two settings for it and refuses to mix them."""
    try:
        return bool(torch.backends.cuda.matmul.allow_tf32) or torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:
        return str(torch.backends.cuda.matmul.fp32_precision) == "tf32"
