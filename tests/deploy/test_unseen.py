"""What C code keeps is watched where it can be, is known not to change, or runs in eager."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import functools
import hashlib
import itertools
import json
import operator
import queue
import re
import sqlite3
import sys
import types
import uuid
import weakref
import xml.etree.ElementTree
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Optional

import numpy as np
import pytest
import torch

from engine.deploy.guarding import Guard
from engine.deploy.unseen import keeps_unseen

Kept = tuple[Any, Callable[[Any], float], Callable[[], Any]]
"""What a function holds, the number that it takes of it, and what makes that another."""


def of_a_view(kind: Callable[[], Any], view: str) -> Kept:
    held = kind()
    held["k"] = 2.0

    def put() -> None:
        del held["k"]
        held["more"] = 5.0

    takes = {"keys": len, "values": float, "items": lambda pair: pair[1]}[view]
    return getattr(held, view)(), lambda seen: float(takes(next(iter(seen)))), put


def of_a_cell() -> Kept:
    cell = types.CellType(2.0)
    return cell, lambda seen: seen.cell_contents, lambda: setattr(cell, "cell_contents", 5.0)


def of_an_exception() -> Kept:
    error = ValueError(2.0)
    return error, lambda seen: seen.args[0], lambda: setattr(error, "args", (5.0,))


def of_a_callers_argument() -> Kept:
    added = [2.0]
    return operator.methodcaller("__add__", added), lambda seen: seen([1.0])[1], lambda: added.__setitem__(0, 5.0)


def of_a_proxy() -> Kept:
    held = {"k": 2.0}
    return types.MappingProxyType(held), lambda seen: seen["k"], lambda: held.update(k=5.0)


KEPT: dict[str, Callable[[], Kept]] = {
    **{
        f"{view} of {kind.__name__}": functools.partial(of_a_view, kind, view)
        for kind in (dict, collections.OrderedDict, collections.UserDict)
        for view in ("keys", "values", "items")
    },
    "a cell": of_a_cell,
    "an exception": of_an_exception,
    "an argument of a caller": of_a_callers_argument,
    "a proxy": of_a_proxy,
}


@pytest.mark.parametrize("what", KEPT)
def test_what_another_object_shows_is_watched(what: str) -> None:
    held, number, put = KEPT[what]()
    guard = Guard(lambda x: x * number(held))
    before, old = guard.state(), number(held)
    assert not before.problem
    assert guard.state() is before
    assert Guard(guard.function).state() == before
    put()
    assert number(held) != old
    assert guard.state() != before


class Color(enum.Enum):
    RED = 1


class Error(Exception):
    """The user's own, with what it was made with alone."""


class Whole(int):
    """A number of the user's own class."""


NEVER_CHANGE: dict[str, Any] = {
    "pattern": re.compile("a"),
    "match": re.match("a", "a"),
    "path": Path("a"),
    "decimal": decimal.Decimal(1),
    "fraction": Fraction(1, 2),
    "identity": uuid.UUID(int=1),
    "time": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    "span": datetime.timedelta(1),
    "sentinel": object(),
    "dots": ...,
    "getter of items": operator.itemgetter(0),
    "dtype": np.dtype("f4"),
    "function of NumPy's": np.add,
    "other function of NumPy's": np.sum,
    "descriptor": torch.Tensor.add,
    "method of a class": str.upper,
    "limits": torch.finfo(torch.float32),
    "alias": list[int],
    "hint": Optional[int],  # noqa: UP045
    "union": int | None,
    "member": Color.RED,
    "code": (lambda: 0).__code__,
    "error": Error("x"),
    "number": Whole(1),
    "stream": sys.stderr,
    "encoder": json.JSONEncoder(),
    "partial": functools.partial(int, "1"),
    "namespace": types.SimpleNamespace(a=1),
    "weak dictionary": weakref.WeakValueDictionary(),
    "field of a named tuple": vars(collections.namedtuple("Pair", "a b"))["a"],
    "named tuple": collections.namedtuple("Pair", "a b")(1, 2),
    "decoder": json.JSONDecoder(),
    "class": collections.OrderedDict,
}


@pytest.mark.parametrize("what", NEVER_CHANGE)
def test_what_never_changes_is_taken(what: str) -> None:
    held = NEVER_CHANGE[what]
    guard = Guard(lambda x: x if held is None else x + 1)
    assert not guard.state().problem
    assert Guard(guard.function).state() == guard.state()


class Counting(itertools.count):  # type: ignore[type-arg]
    """A counter of the user's own class, with attributes."""


class Queue(queue.SimpleQueue[int]):
    """The same of a queue."""


CHANGE: dict[str, Callable[[], Any]] = {
    "an own counter": Counting,
    "an own queue": Queue,
    "a queue": queue.SimpleQueue,
    "a digest": hashlib.sha256,
    "a context": decimal.Context,
    "a database": lambda: sqlite3.connect(":memory:"),
    "an element": lambda: xml.etree.ElementTree.Element("a"),
    "a compressor": zlib.compressobj,
    "an iterator": lambda: iter([1, 2]),
    "an iterator of an array": lambda: np.ones(3).flat,
    "a broadcast": lambda: np.broadcast(np.ones(2), np.ones(2)),
}


def test_the_memory_of_a_tensor_is_said_to_change_too() -> None:
    memory = torch.ones(4).untyped_storage()
    assert "a UntypedStorage (memory)" in Guard(lambda x: x * memory[0]).state().problem


@pytest.mark.parametrize("what", CHANGE)
def test_what_changes_out_of_sight_is_said(what: str) -> None:
    held = CHANGE[what]()
    assert keeps_unseen(type(held))
    problem = Guard(lambda x: x if held is None else x + 1).state().problem
    assert f"it reaches a {type(held).__name__} (held), and a change inside it can't be seen" in problem
