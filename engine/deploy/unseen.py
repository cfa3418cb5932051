"""Which objects keep what changes where nothing sees it: in memory that code written in C has for itself.

What classes written in Python keep lies in dictionaries, slots and cells, and can be watched there. Of the classes of
Python and NumPy that are written in C, those are listed whose objects never change, and those whose content is looked
at in a way of their own; objects of any other one, and of classes made of it, are taken to change unseen.
"""

from __future__ import annotations

import collections
import ctypes
import datetime
import decimal
import io
import json
import logging
import operator
import random
import re
import struct
import threading
import types
import zoneinfo
from collections.abc import Collection
from fractions import Fraction
from pathlib import PurePath
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import torch

from engine.deploy.kinds import BINDING, BYTES, in_library, root_of

_CHANGE_UNSEEN = frozenset({"multiprocessing", "concurrent", "asyncio", "threading", "ctypes", "_ctypes"})
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_LOGGERS = (logging.Logger, logging.LoggerAdapter)
ASKED = (*_LOCKS, *_LOGGERS)
"""Kinds of which `changes_unseen` depends on the names that code says."""
_ASKS_OF_LOCKS = frozenset({"locked", "acquire"})
_ASKS_OF_LOGGERS = frozenset({"level", "disabled", "isEnabledFor", "getEffectiveLevel", "hasHandlers", "handlers"})
_DRAW = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator, torch.Generator)
_OF_C = (ctypes._SimpleCData, ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._Pointer)
_OF_TORCH: tuple[type, ...] = (torch.UntypedStorage, torch.TypedStorage, torch._C.Future, torch.Event)


class _Named(NamedTuple):
    field: int


_FIELD: Any = _Named.__dict__["field"]
IMMUTABLE: tuple[type, ...] = (
    *(int, float, complex, str, bytes, range, slice, types.EllipsisType, types.NotImplementedType),
    *(re.Pattern, re.Match, struct.Struct, decimal.Decimal, Fraction, UUID, PurePath, zoneinfo.ZoneInfo),
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo),
    *(types.CodeType, types.GenericAlias, types.UnionType, types.GetSetDescriptorType, types.MemberDescriptorType),
    *(types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType),
    *(np.dtype, np.ufunc, np.generic, type(np.sum)),
    *(type(_FIELD), type(vars(json.JSONDecoder())["scan_once"])),
)
"""Classes whose objects never change, but for what user's classes made of them add."""
_LOOKED_INTO: tuple[type, ...] = (
    *(list, tuple, set, frozenset, dict, collections.deque, types.MappingProxyType, types.SimpleNamespace),
    *(types.FunctionType, types.ModuleType, types.CellType, type, BaseException),
    *(operator.attrgetter, *BINDING, *BYTES),
    io.IOBase,  # to read or write one leaves the code, which a capture stops
)
"""Classes whose content is watched in a way of its own, or matters to nobody."""
_MARKS_OF_CHANGE = ("__next__", "__setitem__", "append", "send", "put")
"""What classes of torch's that are written in C have if their objects change."""
_SIGNS_OF_PYTHON = frozenset({"__slots__", "__dict__", "__weakref__"})


def changes_unseen(value: object, names: Collection[str]) -> bool:
    """Whether an object keeps what changes where nothing sees it, and code that says `names` could ask for it:
    events, values of other processes, memory of C's or of tensors, generators of random numbers, levels of loggers."""
    if isinstance(value, (*_DRAW, *_OF_C, *_OF_TORCH)):
        return True
    if isinstance(value, _LOCKS):
        return not _ASKS_OF_LOCKS.isdisjoint(names)
    if isinstance(value, _LOGGERS):
        return not _ASKS_OF_LOGGERS.isdisjoint(names)
    return root_of(type(value)) in _CHANGE_UNSEEN and not isinstance(value, threading.local)


def keeps_unseen(kind: type) -> bool:
    """Whether objects of a class have content that C code keeps, and that neither is known not to change nor looked
    into."""
    if root_of(kind) == "torch":
        return not kind.__dictoffset__ and any(hasattr(kind, sign) for sign in _MARKS_OF_CHANGE)
    return any(map(_adds_unseen, kind.__mro__))


def _adds_unseen(kind: type) -> bool:
    base = kind.__base__
    if base is None or root_of(kind) in ("torch", "triton") or not in_library(root_of(kind)):
        return False
    if issubclass(kind, IMMUTABLE) or issubclass(kind, _LOOKED_INTO):
        return False
    if (kind.__basicsize__, kind.__itemsize__) == (base.__basicsize__, base.__itemsize__):
        return False
    parts = kind.__dict__
    in_python = not _SIGNS_OF_PYTHON.isdisjoint(parts) or any(type(p) is types.FunctionType for p in parts.values())
    return not in_python


def slots_of(kind: type) -> list[str]:
    """Attributes of objects that lie in no dictionary, of one class of theirs that is written in Python; and what an
    exception was made with."""
    if kind is BaseException:
        return ["args"]
    if "__slots__" not in kind.__dict__ or issubclass(kind, IMMUTABLE):
        return []
    return [name for name, member in kind.__dict__.items() if isinstance(member, types.MemberDescriptorType)]
