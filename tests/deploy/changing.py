"""Functions that change what they hold, each in a way of its own: calls give 1, 2, 3 of a tensor of ones."""

from __future__ import annotations

import array
import collections
import functools
import io
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Changing = tuple[Callable[..., Any], Callable[[], Any]]
"""The function, and what it holds now, in a form that can be compared."""
KEPT = types.ModuleType("kept")


def _by_item(held: Any) -> Changing:
    def function(x: torch.Tensor) -> torch.Tensor:
        held[0] += 1
        return x * float(held[0])

    return function, lambda: bytes(held)


def in_its_attribute() -> Changing:
    def function(x: torch.Tensor) -> torch.Tensor:
        function.n += 1
        return x * function.n

    function.n = 0
    return function, lambda: function.n


def in_a_helpers_attribute() -> Changing:
    def helper() -> int:
        helper.n += 1
        return helper.n

    helper.n = 0
    return lambda x: x * helper(), lambda: helper.n


def in_a_new_attribute() -> Changing:
    @functools.wraps(len)
    def function(x: torch.Tensor) -> torch.Tensor:
        function.calls = getattr(function, "calls", 0) + 1
        return x * function.calls

    return function, lambda: getattr(function, "calls", 0)


def in_its_defaults() -> Changing:
    def function(x: torch.Tensor, n: int = 1) -> torch.Tensor:
        function.__defaults__ = (n + 1,)
        return x * n

    return function, lambda: function.__defaults__


def by_appending() -> Changing:
    held = types.SimpleNamespace(kept=bytearray())

    def function(x: torch.Tensor) -> torch.Tensor:
        held.kept.append(7)
        return x * len(held.kept)

    return function, lambda: bytes(held.kept)


def by_appending_to_an_array() -> Changing:
    held = array.array("i")

    def function(x: torch.Tensor) -> torch.Tensor:
        held.append(7)
        return x * len(held)

    return function, lambda: held.tobytes()


def by_out() -> Changing:
    held = np.zeros(1)

    def function(x: torch.Tensor) -> torch.Tensor:
        np.add(held, 1, out=held)
        return x * float(held.sum())

    return function, lambda: held.tobytes()


def in_an_array_of_a_module() -> Changing:
    module = torch.nn.Identity()
    module.held = np.zeros(2)  # type: ignore[assignment]

    def function(x: torch.Tensor) -> torch.Tensor:
        module.held[0] += 1
        return module(x) * float(module.held[0])

    return function, lambda: module.held.tobytes()


def in_an_array_of_a_python_module() -> Changing:
    KEPT.held = np.zeros(2)

    def function(x: torch.Tensor) -> torch.Tensor:
        KEPT.held[0] += 1
        return x * float(KEPT.held[0])

    return function, lambda: KEPT.held.tobytes()


def by_order() -> Changing:
    held = collections.OrderedDict({"c": 4, "a": 1, "b": 2, "d": 3})

    def function(x: torch.Tensor) -> torch.Tensor:
        held.move_to_end(next(iter(held)))
        return x * next(iter(held.values()))

    return function, lambda: list(held)


def by_order_of_a_dictionary() -> Changing:
    held = {"c": 4, "a": 1, "b": 2, "d": 3}

    def function(x: torch.Tensor) -> torch.Tensor:
        first = next(iter(held))
        held[first] = held.pop(first)
        return x * next(iter(held.values()))

    return function, lambda: list(held)


def by_writing(held: Any, text: Any) -> Changing:
    def function(x: torch.Tensor) -> torch.Tensor:
        held.write(text)
        return x * len(held.getvalue())

    return function, lambda: (held.getvalue(), held.tell())


def by_turning() -> Changing:
    held = collections.deque([4, 3, 2, 1])

    def function(x: torch.Tensor) -> torch.Tensor:
        held.rotate(1)
        return x * held[0]

    return function, lambda: list(held)


def on_a_tensor() -> Changing:
    held = torch.ones(1)
    held.n = 0  # type: ignore[attr-defined]

    def function(x: torch.Tensor) -> torch.Tensor:
        held.n += 1
        return x * held * held.n

    return function, lambda: held.n


CHANGING: dict[str, Callable[[], Changing]] = {
    "item of NumPy's": lambda: _by_item(np.zeros(1)),
    "item of a bytearray": lambda: _by_item(bytearray(1)),
    "item of an array": lambda: _by_item(array.array("i", [0])),
    "item of a memoryview": lambda: _by_item(memoryview(bytearray(2))[::2]),
    "its attribute": in_its_attribute,
    "a helper's attribute": in_a_helpers_attribute,
    "a new attribute": in_a_new_attribute,
    "its defaults": in_its_defaults,
    "bytearray append": by_appending,
    "array append": by_appending_to_an_array,
    "out=": by_out,
    "a module's array": in_an_array_of_a_module,
    "a Python module's array": in_an_array_of_a_python_module,
    "order of an OrderedDict": by_order,
    "order of a dictionary": by_order_of_a_dictionary,
    "a text in memory": lambda: by_writing(io.StringIO(), "p"),
    "bytes in memory": lambda: by_writing(io.BytesIO(), b"p"),
    "deque": by_turning,
    "a tensor's attribute": on_a_tensor,
}
