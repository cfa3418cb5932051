"""What kinds of things code reaches: which count by value, whose own code isn't looked into, what lies in what."""

from __future__ import annotations

import array
import ctypes
import functools
import io
import logging
import random
import struct
import sys
import threading
import types
import weakref
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from engine.capture.folders import STANDARD, in_packages
from engine.deploy.watching import ABSENT

PLAIN = frozenset(
    {int, bool, str, types.NoneType, bytes, torch.dtype, torch.device, torch.layout, torch.memory_format, range, slice}
)
_PLAIN_TENSORS = frozenset({torch.Tensor, nn.Parameter})
"""Classes of tensors that do what torch's operations say."""
_LIBRARIES = frozenset({"torch", "numpy", "triton", *sys.stdlib_module_names}) - {"__main__"}
CLOSED = frozenset({"logging", "threading", "_thread", "inspect", "ast"})
"""What of the standard library is no part of a computation: see `changes_unseen` for what of it is."""
_CHANGE_UNSEEN = frozenset({"multiprocessing", "concurrent", "asyncio", "threading", "ctypes", "_ctypes"})
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_LOGGERS = (logging.Logger, logging.LoggerAdapter)
ASKED = (*_LOCKS, *_LOGGERS)
"""Kinds of which `changes_unseen` depends on the names that code says."""
_ASKS_OF_LOCKS = frozenset({"locked", "acquire"})
_ASKS_OF_LOGGERS = frozenset({"level", "disabled", "isEnabledFor", "getEffectiveLevel", "hasHandlers", "handlers"})
_DRAW = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator, torch.Generator)
_OF_C = (ctypes._SimpleCData, ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._Pointer)
BYTES = (np.ndarray, bytearray, array.array, memoryview, io.StringIO, io.BytesIO)
"""Kinds that count by the bytes in them; those of the user's own class do otherwise."""
UNREAD = frozenset(
    {
        *("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_backward_pre_hooks"),
        *("_backward_hooks", "_is_full_backward_hook", "_state_dict_hooks", "_state_dict_pre_hooks"),
        *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_compiled_call_impl"),
    }
)
"""What nn.Module keeps of itself that a forward call doesn't read, or that is looked at in its own way."""
BINDING = (
    *(types.MethodType, types.BuiltinMethodType, types.MethodWrapperType, functools.partial, functools.partialmethod),
    *(functools.cached_property, staticmethod, classmethod, property, weakref.ref, functools._lru_cache_wrapper),
)
"""Objects that stand for others: see `parts_of`."""
_NOT_CALLED = frozenset({"__reduce__", "__del__", "__init_subclass__"})
_MAKE = frozenset({"__init__", "__new__"})
_MAKE_TEXTS = frozenset({"__repr__", "__str__", "__format__"})
MARKS_OF_CHANGE = ("__next__", "__setitem__", "append", "send", "put")
"""What classes that are written in C have if their objects change."""


class Same:
    """An object that is equal to itself alone; it is kept, so that no other takes its address."""

    __slots__ = ("item",)

    def __init__(self, item: object) -> None:
        self.item = item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.item is other.item

    def __hash__(self) -> int:
        return id(self.item)


def bits(value: object) -> object:
    """A plain value so that two are equal only if they compute the same: -0.0 isn't 0.0, and NaN is itself."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, complex):
        return struct.pack("<dd", value.real, value.imag)
    if isinstance(value, slice):
        return tuple(map(typed, (value.start, value.stop, value.step)))
    return value


def typed(value: object) -> tuple[type, object]:
    """The value by its bits, with its class: True isn't 1."""
    plain = isinstance(value, float | complex) or type(value) in PLAIN
    return type(value), bits(value) if plain else Same(value)


def odd_kind(tensors: Iterable[torch.Tensor]) -> str:
    """The kind, its class or its layout, of the first of these that no kernel takes, in words; "" if there is none."""
    for tensor in tensors:
        if type(tensor) not in _PLAIN_TENSORS:
            return type(tensor).__name__
        if tensor.layout is not torch.strided or tensor.is_nested:
            return "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
    return ""


def root_of(kind: type) -> str:
    """The package that a class is from."""
    return kind.__module__.partition(".")[0] if isinstance(kind.__module__, str) else ""


def is_installed(function: types.FunctionType) -> bool:
    """Whether the function is of an installed package, rather than the user's own; code may be made of a text there."""
    return in_packages(f"{function.__code__.co_filename} {function.__globals__.get('__file__')}")


def is_installed_class(kind: type) -> bool:
    """The same of a class."""
    return in_packages(str(getattr(sys.modules.get(kind.__module__), "__file__", None)))


def in_library(module: object) -> bool:
    """Whether a Python module is torch's, NumPy's, Triton's or Python's own."""
    return isinstance(module, str) and _is_library(module.partition(".")[0])


@functools.cache
def _is_library(root: str) -> bool:
    if root not in _LIBRARIES:
        return False
    # a file of the user's may be called as a module of Python's
    file = getattr(sys.modules.get(root), "__file__", None)
    return root in ("torch", "numpy", "triton") or not file or file.startswith(STANDARD) or "dynload" in file


def is_library(owner: object) -> bool:
    """The same of a module object."""
    return isinstance(owner, types.ModuleType) and in_library(owner.__name__)


def changes_unseen(value: object, names: Collection[str]) -> bool:
    """Whether an object keeps what changes where nothing sees it, and code that says `names` could ask for it:
    events, values of other processes, memory of C's, generators of random numbers, levels of loggers."""
    if isinstance(value, (*_DRAW, *_OF_C)):
        return True
    if isinstance(value, _LOCKS):
        return not _ASKS_OF_LOCKS.isdisjoint(names)
    if isinstance(value, _LOGGERS):
        return not _ASKS_OF_LOGGERS.isdisjoint(names)
    return root_of(type(value)) in _CHANGE_UNSEEN and not isinstance(value, threading.local)


def is_special(name: str, value: object, makes: bool = False, texts: bool = False) -> bool:
    """Whether it is a method that is called without being named. `makes`: the class may be called, `texts`: code makes
    texts of objects."""
    if not (name.startswith("__") and name.endswith("__")) or name in _NOT_CALLED:
        return False
    if (name in _MAKE and not makes) or (name in _MAKE_TEXTS and not texts):
        return False
    return isinstance(value, types.FunctionType | staticmethod | classmethod | property)


def of_library(kind: type) -> bool:
    """Whether code that isn't read uses the attributes of its objects."""
    roots = {root_of(one) for one in kind.__mro__} - {"builtins", "abc", "typing"}
    return any(map(in_library, roots))


def slots_of(kind: type) -> list[str]:
    """Attributes of objects that lie in no dictionary, of one class of theirs."""
    if in_library(root_of(kind)):
        return []
    return [name for name, member in kind.__dict__.items() if isinstance(member, types.MemberDescriptorType)]


def content_of(cell: types.CellType) -> object:
    """What a variable of a closure is; ABSENT while it is none."""
    try:
        return cell.cell_contents
    except ValueError:  # it is empty yet
        return ABSENT


def parts_of(value: Any) -> tuple[object, ...]:
    """What one of the BINDING kinds stands for."""
    if isinstance(value, weakref.ref):
        return (value(),)
    if isinstance(value, functools._lru_cache_wrapper):
        return (value.__wrapped__,)
    if isinstance(value, types.MethodType):
        return value.__func__, value.__self__
    if isinstance(value, staticmethod | classmethod):
        return (value.__func__,)
    if isinstance(value, types.BuiltinMethodType | types.MethodWrapperType):
        return () if isinstance(value.__self__, types.ModuleType) else (value.__self__,)
    if isinstance(value, functools.cached_property):
        return (value.func,)
    if isinstance(value, property):
        return value.fget, value.fset
    return value.func, value.args, value.keywords
