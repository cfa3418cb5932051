"""Names that code says and that nothing holds at the first call; they come later, each into another place."""

from __future__ import annotations

import builtins
import functools
import json
import math
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

Later = tuple[Callable[[torch.Tensor], Any], Callable[[], Any]]
"""A function of a tensor, and what makes it compute something else."""


def into_a_module() -> Later:
    class Module(nn.Module):
        def forward(self, a: torch.Tensor) -> torch.Tensor:
            return a * 2 if getattr(self, "fast", False) else a * 3

    return Module(), lambda: setattr(Module, "fast", True)


def over_a_method() -> Later:
    class Base(nn.Module):
        def act(self, a: torch.Tensor) -> torch.Tensor:
            return a * 2

        def forward(self, a: torch.Tensor) -> torch.Tensor:
            return self.act(a)

    class Sub(Base):
        pass

    return Sub(), lambda: setattr(Sub, "act", lambda self, a: a * 7)


def over_forward() -> Later:
    class Base(nn.Module):
        def forward(self, a: torch.Tensor) -> torch.Tensor:
            return a * 2

    class Sub(Base):
        pass

    return Sub(), lambda: setattr(Sub, "forward", lambda self, a: a * 7)


def over_a_forward_of_torch() -> Later:
    class Mine(nn.ReLU):
        pass

    return Mine(), lambda: setattr(Mine, "forward", lambda self, a: a * 7)


def over_a_value() -> Later:
    class Base:
        k = 2.0

    class Sub(Base):
        pass

    held = Sub()
    return lambda a: a * held.k, lambda: setattr(Sub, "k", 5.0)


def into_a_class() -> Later:
    class Kind:
        pass

    return lambda a: a * getattr(Kind, "scale", 2.0), lambda: setattr(Kind, "scale", 5.0)


def into_a_class_that_is_asked() -> Later:
    class Kind:
        pass

    held = Kind()
    return lambda a: a * 5 if hasattr(held, "extra") else a * 2, lambda: setattr(Kind, "extra", 1)


def in_place_of_another() -> Later:
    class Kind:
        other = 1.0

    def put() -> None:
        del Kind.other
        Kind.scale = 5.0  # type: ignore[attr-defined]

    return lambda a: a * getattr(Kind, "scale", 2.0), put


def into_a_python_module() -> Later:
    options = types.ModuleType("options")
    return lambda a: a * getattr(options, "scale", 1.0), lambda: setattr(options, "scale", 5.0)


def into_a_python_module_that_is_tried() -> Later:
    options: Any = types.ModuleType("options")

    def function(a: torch.Tensor) -> torch.Tensor:
        try:
            return a * options.scale
        except AttributeError:
            return a * 2

    return function, lambda: setattr(options, "scale", 5.0)


def a_python_modules_own_getattr() -> Later:
    options = types.ModuleType("options")
    return (
        lambda a: a * getattr(options, "scale", 1.0),
        lambda: setattr(options, "__getattr__", lambda name: 5.0),
    )


class Lazy(types.ModuleType):
    """A module of the user's own class."""


def a_property_of_a_python_modules_class() -> Later:
    options = Lazy("options")
    return lambda a: a * getattr(options, "scale_of_lazy", 1.0), lambda: setattr(
        Lazy, "scale_of_lazy", property(lambda self: 5.0)
    )


def truth() -> Later:
    class Kind:
        pass

    held = Kind()
    return lambda a: a * 2 if held else a * 3, lambda: setattr(Kind, "__bool__", lambda self: False)


def truth_by_a_partial() -> Later:
    class Kind:
        pass

    held = Kind()
    return lambda a: a * 2 if held else a * 3, lambda: setattr(Kind, "__bool__", functools.partial(bool, 0))


def every_attribute() -> Later:
    class Kind:
        k = 2.0

    held = Kind()

    def get(self: Kind, name: str) -> Any:
        return 5.0 if name == "k" else object.__getattribute__(self, name)

    return lambda a: a * held.k, lambda: setattr(Kind, "__getattribute__", get)


def a_modules_call() -> Later:
    class Module(nn.Module):
        def forward(self, a: torch.Tensor) -> torch.Tensor:
            return a * 2

    return Module(), lambda: setattr(Module, "__call__", lambda self, a: a * 7)


def an_item_of_a_dictionary() -> Later:
    class Kind(dict[str, float]):
        pass

    held = Kind(k=2.0)
    return lambda a: a * held["k"], lambda: setattr(Kind, "__getitem__", lambda self, key: 5.0)


def a_partials_call() -> Later:
    class Kind(functools.partial[float]):
        pass

    held = Kind(float, "2.0")
    return lambda a: a * held(), lambda: setattr(Kind, "__call__", lambda self: 5.0)


def into_a_metaclass() -> Later:
    class Meta(type):
        pass

    class Kind(metaclass=Meta):
        pass

    return lambda a: a * getattr(Kind, "scale", 2.0), lambda: setattr(Meta, "scale", property(lambda cls: 5.0))


def into_the_metaclass_of_an_object() -> Later:
    class Meta(type):
        pass

    class Kind(metaclass=Meta):
        pass

    held = Kind()
    return lambda a: a * getattr(type(held), "scale", 2.0), lambda: setattr(Meta, "scale", property(lambda cls: 5.0))


def other_bases() -> Later:
    class One:
        k = 2.0

    class Other:
        k = 5.0

    class Kind(One):
        pass

    return lambda a: a * Kind.k, lambda: setattr(Kind, "__bases__", (Other,))


def into_torch() -> Later:
    return lambda a: a * getattr(F, "of_later", 2.0), lambda: setattr(F, "of_later", 5.0)


def into_python() -> Later:
    return lambda a: a * getattr(json, "of_later", 2.0), lambda: setattr(json, "of_later", 5.0)


def into_a_module_of_torch() -> Later:
    layer = nn.Linear(4, 4)
    return lambda a: a * getattr(layer, "of_later", 2.0), lambda: setattr(nn.Linear, "of_later", 5.0)


def into_every_tensor() -> Later:
    return lambda a: a * getattr(a, "of_later", 2.0), lambda: setattr(torch.Tensor, "of_later", 5.0)


def into_the_built_in_names() -> Later:
    def function(a: torch.Tensor) -> torch.Tensor:
        try:
            return a * of_later  # type: ignore[name-defined]
        except NameError:
            return a * 2

    return function, lambda: setattr(builtins, "of_later", 5.0)


def a_module_that_is_imported() -> Later:
    def function(a: torch.Tensor) -> torch.Tensor:
        try:
            import of_later  # type: ignore[import-not-found]
        except ImportError:
            return a * 2
        return a * float(of_later.scale)

    def put() -> None:
        sys.modules["of_later"] = types.ModuleType("of_later")
        sys.modules["of_later"].scale = 5.0  # type: ignore[attr-defined]

    return function, put


def a_variable_of_a_closure() -> Later:
    def function(a: torch.Tensor) -> torch.Tensor:
        try:
            return a * late
        except NameError:
            return a * 2

    def put() -> None:
        nonlocal late
        late = 5.0

    if math.inf < 0:
        late = 1.0
    return function, put


def into_a_partial() -> Later:
    held: Any = functools.partial(float, "2.0")
    return lambda a: a * getattr(held, "k", 2.0), lambda: setattr(held, "k", 5.0)


LATER: dict[str, Callable[[], Later]] = {
    made.__name__: made
    for made in (
        *(into_a_module, over_a_method, over_forward, over_a_forward_of_torch, over_a_value, into_a_class),
        *(into_a_class_that_is_asked, in_place_of_another, into_a_python_module, into_a_python_module_that_is_tried),
        *(a_python_modules_own_getattr, a_property_of_a_python_modules_class, truth, truth_by_a_partial),
        *(every_attribute, a_modules_call, an_item_of_a_dictionary, a_partials_call, into_a_metaclass),
        *(into_the_metaclass_of_an_object, other_bases, into_torch, into_python, into_a_module_of_torch),
        *(into_every_tensor, into_the_built_in_names, a_module_that_is_imported, a_variable_of_a_closure),
        *(into_a_partial,),
    )
}


def taken_away() -> None:
    """Leave torch, Python and this file as they were."""
    for owner in (F, json, nn.Linear, torch.Tensor, builtins):
        if "of_later" in vars(owner):
            delattr(owner, "of_later")
    sys.modules.pop("of_later", None)
    if hasattr(Lazy, "scale_of_lazy"):
        del Lazy.scale_of_lazy
