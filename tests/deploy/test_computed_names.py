"""Names that code takes from texts: of modules, of attributes, of what `match` and classes with arguments show."""

from __future__ import annotations

import importlib
import sys
import types
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib import import_module as load
from typing import Any, Generic, TypeVar

import pytest
import torch

from engine.deploy.codes import said
from engine.deploy.guarding import Guard

Function = Callable[[torch.Tensor], Any]
Way = tuple[Function, Callable[[], Any]]
"""A function of a tensor, and what makes it compute something else."""
T = TypeVar("T")
NAME, GET, READ = "of_texts", sys.modules.get, getattr


@pytest.fixture(autouse=True)
def plug() -> Iterator[types.ModuleType]:
    """A module that can be imported."""
    module = types.ModuleType("of_texts")
    module.scale = 2.0  # type: ignore[attr-defined]
    sys.modules["of_texts"] = module
    yield module
    del sys.modules["of_texts"]


def by_a_local_name(a: torch.Tensor) -> Any:
    from importlib import import_module

    return a * import_module("of_texts").scale


def by_another_local_name(a: torch.Tensor) -> Any:
    from importlib import import_module as other

    return a * other("of_texts").scale


IMPORTED: dict[str, Function] = {
    "importlib": lambda a: a * importlib.import_module("of_texts").scale,
    "its name": lambda a: a * import_module("of_texts").scale,
    "a local name": by_a_local_name,
    "__import__": lambda a: a * __import__("of_texts").scale,
}
READ_OUT_OF_SIGHT: dict[str, tuple[Function, str]] = {
    "sys.modules": (lambda a: a * sys.modules["of_texts"].scale, "reads sys.modules"),
    "a name there": (lambda a: a * (2 if "of_later" in sys.modules else 3), "reads sys.modules"),
    "its method": (lambda a: a * GET("of_texts").scale, "reads sys.modules"),  # type: ignore[union-attr]
    "a computed name": (lambda a: a * importlib.import_module(NAME).scale, "whose names its code doesn't say"),
    "another name": (lambda a: a * load("of_texts").scale, "whose names its code doesn't say"),
    "another local name": (by_another_local_name, "whose names its code doesn't say"),
    "subclasses": (lambda a: a * len(OfTexts.__subclasses__()), "asks a class for its subclasses"),
}


class OfTexts:
    """A class that others could be made of."""


@pytest.mark.parametrize("by", IMPORTED)
def test_a_module_that_a_call_with_a_constant_imports_is_followed(by: str, plug: types.ModuleType) -> None:
    follows(IMPORTED[by], lambda: setattr(plug, "scale", 5.0))
    other = types.ModuleType("of_texts")
    other.scale = 7.0  # type: ignore[attr-defined]
    follows(IMPORTED[by], lambda: sys.modules.update(of_texts=other))


@pytest.mark.parametrize("what", READ_OUT_OF_SIGHT)
def test_what_comes_where_no_name_is_said_is_refused(what: str) -> None:
    function, words = READ_OUT_OF_SIGHT[what]
    assert words in Guard(function).state().problem


def test_what_else_is_in_sys_is_no_problem() -> None:
    assert not Guard(lambda a: a * sys.maxunicode).state().problem


def follows(function: Function, put: Callable[[], Any]) -> None:
    """Check that another result is another state."""
    guard, x = Guard(function), torch.ones(4)
    before, result = guard.state(), function(x)
    assert not before.problem
    assert guard.state() is before
    kept = put()
    assert not torch.equal(function(x), result)
    after = guard.state()
    assert after != before
    assert guard.state() is after
    del kept


def of_a_class() -> Way:
    class Kind:
        p = 2.0

    return lambda a: a * sum(getattr(Kind, n, 1.0) for n in ("p", "q")), lambda: setattr(Kind, "q", 5.0)


def of_a_class_by_a_text() -> Way:
    class Kind:
        p0 = 2.0

    return lambda a: a * sum(getattr(Kind, f"p{i}", 1.0) for i in range(2)), lambda: setattr(Kind, "p0", 5.0)


def of_an_object() -> Way:
    held = types.SimpleNamespace(p=1.0)
    return lambda a: a * sum([hasattr(held, n) for n in ("q", "r")]), lambda: setattr(held, "r", 5.0)


def of_a_list() -> Way:
    class Kind:
        p = 2.0

    names = ["p", "q"]
    return lambda a: a * sum([getattr(Kind, n, 1.0) for n in names]), lambda: setattr(Kind, "q", 5.0)


def of_a_python_module() -> Way:
    held = types.ModuleType("held")
    return lambda a: a * sum([getattr(held, f"layer{i}", 2.0) for i in range(3)]), lambda: setattr(held, "layer1", 5.0)


def of_a_tensor() -> Way:
    held = torch.ones(4)
    held.p0 = 2.0  # type: ignore[attr-defined]
    return lambda a: a * sum([getattr(held, f"p{i}", 2.0) for i in range(2)]), lambda: setattr(held, "p0", 5.0)


def by_another_getattr() -> Way:
    class Kind:
        p = 2.0

    return lambda a: a * sum([READ(Kind, n, 1.0) for n in ("p", "q")]), lambda: setattr(Kind, "q", 5.0)


class Shown:
    """A class of which `match` takes an attribute that no code names."""

    __match_args__ = ("u",)

    def __init__(self) -> None:
        self.u, self.w = 2.0, 5.0


def matched() -> Way:
    class Kind(Shown):
        pass

    held: Any = Kind()

    def function(a: torch.Tensor) -> Any:
        match held:
            case Shown(factor):
                return a * factor

    return function, lambda: setattr(held, "u", 3.0)


def matched_otherwise() -> Way:
    class Kind(Shown):
        __match_args__ = ("u",)

    held: Any = Kind()

    def function(a: torch.Tensor) -> Any:
        match held:
            case Kind(factor):
                return a * factor

    return function, lambda: setattr(Kind, "__match_args__", ("w",))


def argument_of(made: Callable[[type], Any]) -> Way:
    class Kind:
        k = 2.0

    alias = made(Kind)
    return lambda a: a * alias.__args__[0].k, lambda: setattr(Kind, "k", 5.0)


def shown_by_an_alias() -> Way:
    class Kind(Generic[T]):
        k = 2.0

    alias: Any = Kind[int]
    return lambda a: a * alias.k, lambda: setattr(Kind, "k", 5.0)


WAYS: dict[str, Callable[[], Way]] = {
    **{
        one.__name__: one
        for one in (
            *(of_a_class, of_a_class_by_a_text, of_an_object, of_a_list, of_a_python_module, of_a_tensor),
            *(by_another_getattr, matched, matched_otherwise, shown_by_an_alias),
        )
    },
    "list[]": lambda: argument_of(lambda kind: list[kind]),  # type: ignore[valid-type]
    "typing.List[]": lambda: argument_of(lambda kind: typing.List[kind]),  # type: ignore[valid-type] # noqa: UP006
    "a union": lambda: argument_of(lambda kind: kind | int),
}


@pytest.mark.parametrize("what", WAYS)
def test_what_a_computed_name_stands_for_is_followed(what: str) -> None:
    follows(*WAYS[what]())


NAMED: list[tuple[Callable[..., Any], bool]] = [
    (lambda a: getattr(a, "x"), False),  # noqa: B009
    (lambda a, b: getattr(a.b(1, 2), "x", b(1, a)), False),
    (lambda a: hasattr(a, "x") and getattr(a, "y", None), False),
    (lambda a: getattr(getattr(a, "b"), "c"), False),  # noqa: B009
    (lambda a: [getattr(n, "x", 0.0) for n in a], False),
    (lambda a: getattr(a, NAME), True),
    (lambda a: getattr(a, NAME + "x", "c"), True),
    (lambda a: [getattr(a, n) for n in ("b", "c")], True),
    (lambda a: list(map(getattr, a, ("b", "c"))), True),
    (lambda a: vars(a)["b"], True),
]


@pytest.mark.parametrize(("function", "computes"), NAMED)
def test_a_name_is_computed_unless_it_is_a_constant(function: Any, computes: bool) -> None:
    assert said(function.__code__, {}).asks_any == computes
