"""What kinds of things code reaches: which count by value, whose own code isn't looked into, what lies in what."""

from __future__ import annotations

import array
import functools
import gc
import io
import operator
import struct
import sys
import types
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from engine.capture.folders import STANDARD, in_packages
from engine.deploy.watching import ABSENT, raw

_NUMPYS = frozenset(np.sctypeDict.values()) - {np.object_, np.void}
"""Classes of NumPy's values; a void is a row of an array, which can change."""
PLAIN = frozenset(
    {
        *(int, bool, float, complex, str, types.NoneType, bytes, range, slice),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format),
        *_NUMPYS,
    }
)
"""Classes whose objects count by their value."""
_PLAIN_TENSORS = frozenset({torch.Tensor, nn.Parameter})
"""Classes of tensors that do what torch's operations say."""
_LIBRARIES = frozenset({"torch", "numpy", "triton", *sys.stdlib_module_names}) - {"__main__"}
CLOSED = frozenset({"logging", "threading", "_thread", "inspect", "ast", "typing", "dataclasses", "_abc"})
"""What of the standard library is no part of a computation: see `unseen` for what of it is."""
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
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
"""What a dictionary is seen by; those of an OrderedDict are of these kinds too."""
BINDING = (
    *(*_VIEWS, operator.itemgetter, operator.methodcaller),
    *(types.MethodType, types.BuiltinMethodType, types.MethodWrapperType, functools.partial, functools.partialmethod),
    *(functools.cached_property, staticmethod, classmethod, property, weakref.ref, functools._lru_cache_wrapper),
)
"""Objects that stand for others: see `parts_of`."""
_IMMUTABLE_TYPE = 1 << 8
"""The flag Py_TPFLAGS_IMMUTABLETYPE of CPython's classes."""
_NOT_CALLED = frozenset({"__reduce__", "__del__", "__init_subclass__", "__dict__", "__weakref__"})
_MAKE = frozenset({"__init__", "__new__"})
_MAKE_TEXTS = frozenset({"__repr__", "__str__", "__format__"})


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
    if isinstance(value, np.generic):
        return raw(value)
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


def is_installed_module(module: types.ModuleType) -> bool:
    """The same of a Python module."""
    return in_packages(str(getattr(module, "__file__", None)))


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


def can_change(kind: type) -> bool:
    """Whether attributes of a class can be set."""
    return not kind.__flags__ & _IMMUTABLE_TYPE


def is_special(name: str, value: object, makes: bool = False, texts: bool = False) -> bool:
    """Whether it is a method that is called without being named. `makes`: the class may be called, `texts`: code makes
    texts of objects."""
    if not (name.startswith("__") and name.endswith("__")) or name in _NOT_CALLED:
        return False
    if (name in _MAKE and not makes) or (name in _MAKE_TEXTS and not texts):
        return False
    return callable(value) or hasattr(type(value), "__get__")


def of_library(kind: type) -> bool:
    """Whether code that isn't read uses the attributes of its objects."""
    roots = {root_of(one) for one in kind.__mro__} - {"builtins", "abc", "typing"}
    return any(map(in_library, roots))


def content_of(cell: types.CellType) -> object:
    """What a variable of a closure is; ABSENT while it is none."""
    try:
        return cell.cell_contents
    except ValueError:  # it is empty yet
        return ABSENT


def is_alias(value: object) -> bool:
    """Whether it is a class with arguments, such as `list[int]`, or a union of classes."""
    kind = type(value)
    return kind in (types.GenericAlias, types.UnionType) or (kind.__module__ == "typing" and hasattr(value, "__args__"))


def alias_parts(value: object) -> tuple[object, ...]:
    """What such a one is made of, whose attributes it may show as its own."""
    args, noted = getattr(value, "__args__", ()), getattr(value, "__metadata__", ())
    return getattr(value, "__origin__", None), *args, *noted


def parts_of(value: Any) -> tuple[object, ...]:
    """What one of the BINDING kinds stands for."""
    if isinstance(value, weakref.ref):
        return (value(),)
    if isinstance(value, _VIEWS):
        return tuple(gc.get_referents(value))
    if isinstance(value, operator.itemgetter | operator.methodcaller):
        reduced: Any = value.__reduce__()
        made_by, given = reduced[:2]
        return (*given, *getattr(made_by, "keywords", {}).values())
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
