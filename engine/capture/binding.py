"""A target as a call that runs: its function with arguments on a real device, as torch has it.

What is measured against a deployment is the user's own code, so tensors that the code draws are drawn once and become
arguments; a model has random weights, as when it is tuned.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from engine.capture.configurations import configure
from engine.capture.files import example_call
from engine.capture.meta import user_code
from engine.capture.models import arguments_of, build_model, layer_of, model_inputs
from engine.capture.target import FileTarget, ModelTarget, ParsedTarget, Target
from engine.capture.trace import NAMES_OF_CODE, TakeOut

INTEGER_REACH = 16
"""Integers that are fed lie below this: positions and tokens that every model has."""


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A function with its arguments. Calling it runs it under no_grad."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self) -> Any:
        with torch.no_grad():
            return self.function(*self.args, **self.kwargs)


def bind_target(target: Target, device: str, seed: int = 0) -> BoundCall:
    """What the target calls, ready to be called on `device`, where its text names none. Floating inputs of a model are
    normal with deviation 1.

    Raises CaptureError, and torch's OutOfMemoryError for what doesn't fit.
    """
    torch.manual_seed(seed)
    with torch.no_grad(), user_code():
        if isinstance(target, ModelTarget):
            return _bind_model(target, device)
        with torch.device(device):
            if isinstance(target, FileTarget):
                function, args, kwargs = example_call(target)
                if isinstance(function, nn.Module):
                    function.to(device)
                args, kwargs = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), (args, kwargs))
                return BoundCall(function, args, kwargs)
            return _bind_code(target)


def _bind_code(target: ParsedTarget) -> BoundCall:
    namespace = _namespace(target)
    taken = TakeOut(namespace)
    expression = taken.visit_call(ast.parse(target.call, mode="eval").body)
    parameters = ast.arguments([], [ast.arg(name) for name in taken.names], None, [], [], None, [])
    function = ast.fix_missing_locations(ast.Expression(ast.Lambda(parameters, expression)))
    called = eval(compile(function, "<code>", "eval"), namespace)
    modules = [module for _, module in taken.modules]
    tensors = tuple(tensor for _, tensor in taken.tensors)
    return BoundCall(_Expression(called, modules), tensors, {})


def _namespace(target: ParsedTarget) -> dict[str, Any]:
    """The globals of the code once its statements ran as a script. They are those of a module that is known by its
    name: torch.compile looks there for what a function reads that a module calls."""
    name = f"code_{hashlib.sha256(target.text.encode()).hexdigest()[:16]}"
    module = ModuleType(name)
    vars(module).update(NAMES_OF_CODE)
    exec(compile(target.statements, "<code>", "exec"), vars(module))
    module.__name__ = name
    sys.modules[name] = module
    return vars(module)


class _Expression(nn.Module):
    """The final call as a module, so that the modules which it reads are known to be its own."""

    def __init__(self, function: Callable[..., Any], modules: list[nn.Module]) -> None:
        super().__init__()
        self._function = function
        self._read = nn.ModuleList(modules)

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self._function(*tensors)


def _bind_model(target: ModelTarget, device: str) -> BoundCall:
    model, _ = build_model(configure(target.name), target.options, device)
    inputs = model_inputs(model, target.options)
    if target.options.layer is None:
        return BoundCall(model, (), _filled(inputs))
    layer = layer_of(model, target.options.layer)
    args, kwargs = arguments_of(layer, lambda: model(**inputs))
    return BoundCall(layer, _filled(args), _filled(kwargs))


def _filled(arguments: Any) -> Any:
    """The arguments with random tokens and floats in place of zeros."""

    def fill(tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.clone()
        if tensor.is_floating_point():
            return tensor.normal_()
        if tensor.dtype == torch.int64 and not bool(tensor.any()):
            return tensor.random_(0, INTEGER_REACH)
        return tensor

    return pytree.tree_map_only(torch.Tensor, fill, arguments)
