"""Code that differentiates or turns gradients on itself, in Triton's interpreter; the program is `interpreted`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import engine
from engine.deploy.backend import CompiledCall, emmy_backend
from tests.deploy.hearing import told

X = torch.arange(12.0).view(3, 4) - 5.0
WANTING = torch.linspace(-1.0, 1.0, 12).view(3, 4).clone().requires_grad_()
HELD = nn.Parameter(torch.linspace(-2.0, 1.0, 12).view(3, 4))


def _square(a: torch.Tensor) -> torch.Tensor:
    return (a * a * 2.0).sum()


DIFFERENTIATING: dict[str, Callable[[torch.Tensor], Any]] = {
    "grad": lambda a: torch.func.grad(_square)(a),
    "vmap of grad": lambda a: torch.func.vmap(torch.func.grad(_square))(a),
    "jacfwd": lambda a: torch.func.jacfwd(lambda b: b * b)(a),
    "jacrev": lambda a: torch.func.jacrev(lambda b: b * b)(a),
    "jvp": lambda a: torch.func.jvp(lambda b: b * b, (a,), (a,))[1],
    "hessian": lambda a: torch.func.hessian(_square)(a),
}


def enabled(a: torch.Tensor, p: torch.Tensor) -> Any:
    with torch.enable_grad():
        return (a * p).sum()


def enabled_over_held(a: torch.Tensor, p: torch.Tensor) -> Any:
    with torch.enable_grad():
        return a * HELD + p.detach()


def enabled_view(a: torch.Tensor, p: torch.Tensor) -> Any:
    with torch.enable_grad():
        return a * 2.0, p.t(), HELD.t()


def own_leaf(a: torch.Tensor, p: torch.Tensor) -> Any:
    with torch.enable_grad():
        b = a.detach().requires_grad_()
        return (b * b * p.detach()).sum(), b


def own_gradient(a: torch.Tensor, p: torch.Tensor) -> Any:
    with torch.enable_grad():
        b = a.detach().requires_grad_()
        return torch.autograd.grad((b * b * p.detach()).sum(), b)[0]


def returned(a: torch.Tensor, p: torch.Tensor) -> Any:
    return a * 2.0, p, p.t()


def returned_detached(a: torch.Tensor, p: torch.Tensor) -> Any:
    return a * 2.0, p.detach(), p.detach().t()


def returned_held(a: torch.Tensor, p: torch.Tensor) -> Any:
    return a + p, HELD, HELD.t(), HELD.detach()


ENABLING = (
    enabled,
    enabled_over_held,
    enabled_view,
    own_leaf,
    own_gradient,
    returned,
    returned_detached,
    returned_held,
)


def gradients() -> dict[str, Any]:
    """For each function, called three times by each entry: what is right of the results, and what was said."""
    found: dict[str, Any] = {"differentiating": {}, "enabling": {}}
    for name, function in DIFFERENTIATING.items():
        wanted = function(X)
        for entry, make in _ENTRIES.items():
            results, said = told(lambda make=make, function=function: _thrice(make(function)[0], (X,)))
            right = [type(one) is torch.Tensor and torch.equal(one, wanted) for one in results]
            found["differentiating"][f"{name}, {entry}"] = [right, said]
    for function in ENABLING:
        for entry, make in _ENTRIES.items():
            compiled, calls = make(function)
            results, said = told(lambda compiled=compiled: _thrice(compiled, (X, WANTING)))
            plain = function(X, WANTING)
            deployed = sum(len(call.deployments) for call in calls)
            found["enabling"][f"{function.__name__}, {entry}"] = [
                [_alike(one, plain) for one in results],
                deployed,
                said,
            ]
    return found


def _thrice(compiled: Callable[..., Any], args: tuple[torch.Tensor, ...]) -> list[Any]:
    return [compiled(*args) for _ in range(3)]


def _by_engine(function: Callable[..., Any]) -> tuple[Callable[..., Any], list[CompiledCall]]:
    compiled = engine.compile(function)
    return compiled, [compiled.call]


def _by_torch(function: Callable[..., Any]) -> tuple[Callable[..., Any], list[CompiledCall]]:
    calls: list[CompiledCall] = []

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        made = emmy_backend(module, inputs)
        calls.append(made.call)
        return made

    torch._dynamo.reset()
    return torch.compile(function, backend=backend), calls


_ENTRIES = {"engine": _by_engine, "torch": _by_torch}


def _alike(one: Any, other: Any) -> bool:
    """Whether they are equal, want gradients where the others do, and give the same ones."""
    pairs = list(zip(*(value if isinstance(value, tuple) else (value,) for value in (one, other)), strict=True))
    same = all(torch.allclose(a, b) and (a.requires_grad, a.is_leaf) == (b.requires_grad, b.is_leaf) for a, b in pairs)
    return same and all((a is WANTING) == (b is WANTING) and (a is HELD) == (b is HELD) for a, b in pairs)
