"""The user's code, run on tensors without memory, and exported.

Every tensor lives on torch's meta device, whatever device the text names: no CUDA is needed, nothing is allocated,
and a program that asks for a tensor's values is recognized. Tensors that the final call creates are taken
out of it first, so that they are its inputs and not a part of what is tuned.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from engine.capture.convert import convert
from engine.capture.errors import NoTensorInputError
from engine.capture.export import allows_tf32, export
from engine.capture.files import trace_file
from engine.capture.meta import CREATORS, OnMeta, first_named, user_code
from engine.capture.models import trace_model
from engine.capture.target import FileTarget, ModelTarget, ParsedTarget, Target
from engine.ir.plan import Program

_CHAIN = frozenset(
    {
        *("to", "cuda", "cpu", "half", "bfloat16", "float", "double", "int", "long", "bool", "type", "contiguous"),
        *("t", "transpose", "permute", "view", "reshape", "expand", "unsqueeze", "squeeze", "flatten", "eval"),
        *("requires_grad_", "detach", "clone", "train", "swapaxes", "movedim"),
    }
)

NAMES_OF_CODE: Mapping[str, Any] = {"torch": torch, "F": nn.functional, "nn": nn, "math": math, "__name__": "__main__"}
"""Globals that code finds without importing them; it runs as a script does."""


def trace(target: Target, device: str) -> Program:
    """The program of a target, on `device` unless its text names another one. Raises CaptureError."""
    if isinstance(target, ModelTarget):
        return trace_model(target, device)
    if isinstance(target, FileTarget):
        return trace_file(target, device)
    return _trace_code(target, device)


def _trace_code(target: ParsedTarget, device: str) -> Program:
    """Run the statements, export the call and convert it."""
    devices: list[str] = []
    mode = OnMeta(devices)
    with torch.no_grad(), mode, user_code():
        namespace = dict(NAMES_OF_CODE)
        exec(compile(target.statements, "<code>", "exec"), namespace)
        call = _Call(target.call, namespace, devices)
        call(*(tensor for _, tensor in call.inputs))
    program = export(call, tuple(tensor for _, tensor in call.inputs))
    given = {f"tensors_{i}": pair for i, pair in enumerate(call.inputs)}
    graph = convert(program, given, allows_tf32(), own_inputs=True)
    return Program(graph, target.text, first_named(devices, device))


class _Call(nn.Module):
    """The final call as a module: tensors that it names or creates are its inputs, modules are its submodules."""

    def __init__(self, text: str, namespace: dict[str, Any], devices: list[str]) -> None:
        super().__init__()
        self._devices = devices
        self._namespace = namespace
        taken = TakeOut(namespace)
        expression = taken.visit_call(ast.parse(text, mode="eval").body)
        self.inputs = taken.tensors
        self._names = list(taken.names)
        self._code = compile(ast.fix_missing_locations(ast.Expression(expression)), "<code>", "eval")
        for label, module in taken.modules:
            self.add_module(label, module)

    def forward(self, *tensors: torch.Tensor) -> Any:
        with OnMeta(self._devices):
            return eval(self._code, {**self._namespace, **dict(zip(self._names, tensors, strict=True))})


class TakeOut(ast.NodeTransformer):
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
        return any(made_by is getattr(torch, name) for name in CREATORS)

    def _resolve(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return self._namespace.get(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(self._resolve(node.value), node.attr, None)
        return None
