"""Every way in which code reaches a tensor, and every way in which that changes."""

from __future__ import annotations

import collections
import functools
import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

import engine
from engine.deploy.guarding import Guard
from tests.deploy.hearing import heard

Way = tuple[Callable[..., Any], Callable[[torch.Tensor], Any]]
"""A function that reaches a tensor, and what puts another in its place."""
HERE = sys.modules[__name__]
GLOBAL = torch.ones(4, 4)
ELSEWHERE = types.ModuleType("elsewhere")


def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * w + 1.0


@dataclass
class Held:
    w: torch.Tensor

    def scale(self, x: torch.Tensor) -> torch.Tensor:
        return scaled(x, self.w)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return scaled(x, self.w)


class Slotted:
    __slots__ = ("w",)


class Shared:
    w = torch.ones(4, 4)

    @staticmethod
    def scale(x: torch.Tensor) -> torch.Tensor:
        return scaled(x, Shared.w)

    @property
    def mine(self) -> torch.Tensor:
        return type(self).w


class Named(NamedTuple):
    w: Any


class Mine(dict[str, Any]):
    """A container of the user's own class."""


class Weighted(nn.Module):
    def __init__(self, w: torch.Tensor, kind: str) -> None:
        super().__init__()
        if kind == "parameter":
            self.w = nn.Parameter(w, requires_grad=False)
        elif kind == "buffer":
            self.register_buffer("w", w)
        else:
            self.rest = [w]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return scaled(x, self.rest[0] if hasattr(self, "rest") else self.w)


def in_closure(w: torch.Tensor) -> Way:
    def put(new: torch.Tensor) -> None:
        nonlocal w
        w = new

    return lambda x: scaled(x, w), put


def in_default(w: torch.Tensor) -> Way:
    def function(x: torch.Tensor, w: torch.Tensor = w) -> torch.Tensor:
        return scaled(x, w)

    return function, lambda new: setattr(function, "__defaults__", (new,))


def in_named_default(w: torch.Tensor) -> Way:
    def function(x: torch.Tensor, *, w: torch.Tensor = w) -> torch.Tensor:
        return scaled(x, w)

    return function, lambda new: function.__kwdefaults__.update(w=new)


def in_function(w: torch.Tensor) -> Way:
    def function(x: torch.Tensor) -> torch.Tensor:
        return scaled(x, function.w)

    function.w = w
    return function, lambda new: setattr(function, "w", new)


def in_partial(w: torch.Tensor) -> Way:
    made = functools.partial(scaled, w=w)
    return made, lambda new: made.keywords.update(w=new)


def in_global(w: torch.Tensor) -> Way:
    HERE.GLOBAL = w
    return lambda x: scaled(x, GLOBAL), lambda new: setattr(HERE, "GLOBAL", new)


def in_python_module(w: torch.Tensor) -> Way:
    ELSEWHERE.w = w
    return lambda x: scaled(x, ELSEWHERE.w), lambda new: setattr(ELSEWHERE, "w", new)


def in_slots(w: torch.Tensor) -> Way:
    held = Slotted()
    held.w = w
    return lambda x: scaled(x, held.w), lambda new: setattr(held, "w", new)


def in_class(w: torch.Tensor, function: Callable[..., Any]) -> Way:
    Shared.w = w
    return function, lambda new: setattr(Shared, "w", new)


def in_item(holder: Any, key: Any, w: torch.Tensor) -> Way:
    if isinstance(holder, dict | collections.UserDict):
        holder[key] = w
    else:
        holder.append(w)
    return lambda x: scaled(x, holder[key]), lambda new: holder.__setitem__(key, new)


def in_object(w: torch.Tensor, made: Callable[[Held], Callable[..., Any]]) -> Way:
    held = Held(w)
    return made(held), lambda new: setattr(held, "w", new)


def through(reference: weakref.ref[Held], kept: Held) -> Callable[..., Any]:
    def function(x: torch.Tensor) -> torch.Tensor:
        return reference().scale(x)

    function.kept_alive = kept
    return function


def in_named_tuple(w: torch.Tensor) -> Way:
    holder = [Named(Named(w))]
    return lambda x: scaled(x, holder[0].w.w), lambda new: holder.__setitem__(0, Named(Named(new)))


def in_decorated(w: torch.Tensor) -> Way:
    function, put = in_closure(w)
    return torch.no_grad()(functools.wraps(function)(lambda x: function(x))), put


def in_module(w: torch.Tensor, kind: str, made: Callable[[nn.Module], Callable[..., Any]]) -> Way:
    module = Weighted(w, kind).eval()

    def put(new: torch.Tensor) -> None:
        if kind == "rest":
            module.rest[0] = new
        else:
            module.w = nn.Parameter(new, requires_grad=False) if kind == "parameter" else new

    return made(module), put


WAYS: dict[str, Callable[[torch.Tensor], Way]] = {
    "closure": in_closure,
    "default": in_default,
    "named default": in_named_default,
    "attribute of a function": in_function,
    "partial": in_partial,
    "global": in_global,
    "attribute of a Python module": in_python_module,
    "slot": in_slots,
    "class": lambda w: in_class(w, lambda x: scaled(x, Shared.w)),
    "static method": lambda w: in_class(w, Shared.scale),
    "property": lambda w: in_class(w, (lambda shared: lambda x: scaled(x, shared.mine))(Shared())),
    "list": lambda w: in_item([], 0, w),
    "dictionary": lambda w: in_item({}, "w", w),
    "deque": lambda w: in_item(collections.deque(), 0, w),
    "defaultdict": lambda w: in_item(collections.defaultdict(list), "w", w),
    "OrderedDict": lambda w: in_item(collections.OrderedDict(), "w", w),
    "UserDict": lambda w: in_item(collections.UserDict(), "w", w),
    "own dictionary": lambda w: in_item(Mine(), "w", w),
    "named tuple": in_named_tuple,
    "attribute": lambda w: in_object(w, lambda held: lambda x: scaled(x, held.w)),
    "bound method": lambda w: in_object(w, lambda held: held.scale),
    "callable object": lambda w: in_object(w, lambda held: held),
    "weak reference": lambda w: in_object(w, lambda held: through(weakref.ref(held), held)),
    "decorated": in_decorated,
    "parameter": lambda w: in_module(w, "parameter", lambda module: module),
    "buffer": lambda w: in_module(w, "buffer", lambda module: module),
    "list of a module": lambda w: in_module(w, "rest", lambda module: module),
    "module in a module": lambda w: in_module(w, "parameter", lambda module: nn.Sequential(nn.Sequential(module))),
    "module in a closure": lambda w: in_module(w, "buffer", lambda module: lambda x: module(x)),
    "module in a list": lambda w: in_module(w, "parameter", lambda module: lambda x, all=[module]: all[0](x)),
    "forward of a module": lambda w: in_module(w, "parameter", lambda module: module.forward),
}
CHANGES: dict[str, Callable[[torch.Tensor, Callable[[torch.Tensor], Any]], Any]] = {
    "written to": lambda w, put: w.mul_(2.0),
    "written to through .data": lambda w, put: w.data.mul_(3.0),
    "other .data": lambda w, put: setattr(w, "data", torch.randn(4, 4)),
    "other strides in place": lambda w, put: setattr(w, "data", w.data.t()),
    "other shape in place": lambda w, put: setattr(w, "data", w.data[:1]),
    "other dtype": lambda w, put: setattr(w, "data", torch.randn(4, 4, dtype=torch.float64)),
    "other memory": lambda w, put: w.set_(torch.randn(4, 4, dtype=w.dtype)),
    "moved by set_": lambda w, put: setattr(
        w, "data", torch.empty(0).set_(torch.randn(20).untyped_storage(), 4, (4, 4), (4, 1))
    ),
    "negated lazily": lambda w, put: setattr(w, "data", torch._neg_view(w.data)),
    "gradients wanted": lambda w, put: w.requires_grad_(True),
    "replaced": lambda w, put: put(torch.randn(4, 4)),
}
VALUES_ONLY = ("written to", "written to through .data")
"""Changes that kernels see, because they read weights where they lie: nothing is captured anew."""
UNREADABLE = "negated lazily"
"""The change after which no kernel can read the tensor, until it is replaced or becomes another one."""


def everyday(way: str) -> list[str]:
    """The third of the changes that this way is tried with each day, another third than of the way before it: so
    every change meets ten ways and more."""
    first = list(WAYS).index(way)
    return [change for position, change in enumerate(CHANGES) if (position + first) % 3 == 0]


def rest(way: str) -> list[str]:
    """The changes that are left."""
    return [change for change in CHANGES if change not in everyday(way)]


def the_tensor(function: Callable[..., Any], w: torch.Tensor) -> torch.Tensor:
    """The tensor that the function reaches where `w` was put: a parameter is another one in the same memory."""
    return next(one for one in Guard(function).state().tensors if one.data_ptr() == w.data_ptr())


def alike(a: torch.Tensor, b: torch.Tensor) -> bool:
    same = (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
    return same and torch.allclose(a, b, rtol=1e-5, atol=1e-5)


def followed(way: Callable[[torch.Tensor], Way], changes: list[str]) -> dict[str, Any]:
    """These changes one after the other, and for each whether the two calls after it are right."""
    x, w = torch.randn(4, 4), torch.randn(4, 4)
    function, put = way(w)
    w = the_tensor(function, w)
    call = engine.compile(function)
    right = {}
    with torch.no_grad(), heard() as said:
        first = alike(call(x), function(x))
        for change in changes:
            CHANGES[change](w, put)
            right[change] = alike(call(x), function(x)) and alike(call(x), function(x))
    return {"first": first, "right": right, "kernels": len(call.call.deployments), "said": said}
