"""Whether everything that a function reached is still as it was: flat comparisons, a microsecond for dozens of objects.

Walking through what a function reaches takes a millisecond for a model, so it isn't done at every call. What the walk
saw is kept here as it lies in memory: of each dictionary, list and cell the objects in it, by identity, and of each
tensor what it is beside its values. As long as all of it is the same, so is what the walk would find. The comparisons
run over all objects of a kind at once, because a loop in Python would take longer than they do.

Values of tensors are not compared: kernels read them where they lie.
"""

from __future__ import annotations

import functools
import io
import operator
import types
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain, repeat
from typing import Any, Final

import numpy as np
import torch

from engine.deploy.caches import entries_of

ABSENT: Final = object()
"""Stands for what isn't there: a name, or the content of an empty cell."""

_ABOUT_TENSORS: tuple[Callable[[torch.Tensor], Any], ...] = (
    torch.Tensor.data_ptr,
    torch.Tensor.stride,
    torch.Tensor.is_conj,
    torch.Tensor.is_neg,
    *map(operator.attrgetter, ("shape", "dtype", "device", "requires_grad", "__class__")),
)
"""What of a tensor makes it another for a kernel; the address first, as it changes most."""
_BUILT_IN = frozenset({dict, OrderedDict})
OF_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__")
"""What of a function makes it another one, besides what is looked at in its own way."""
_ABOUT_FUNCTIONS = tuple(map(operator.attrgetter, OF_FUNCTIONS))


def about(tensor: torch.Tensor) -> tuple[object, ...]:
    """Everything of a tensor but its values: where it lies and how it is read there."""
    return tuple(of(tensor) for of in _ABOUT_TENSORS)


class Watch:
    """What a walk saw. It is filled by the `add` methods, and asked by `holds`."""

    __slots__ = (
        *("_absent", "_arrays", "_caches", "_cells", "_classed", "_empty", "_functions", "_getters", "_heirs"),
        *("_keyed", "_keys", "_known", "_lists", "_meant", "_named", "_none_yet", "_saved", "_sized", "_slots"),
        *("_unmet", "_valued", "_values", "tensors"),
    )

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self._empty: list[Collection[Any]] = []
        self._keyed: list[Mapping[Any, Any]] = []
        self._keys: list[object] = []
        self._valued: list[Mapping[Any, Any]] = []
        self._values: list[object] = []
        self._lists: list[Collection[Any]] = []
        self._cells: list[Any] = []
        self._none_yet: list[types.CellType] = []
        self._functions: list[Any] = []
        self._classed: list[object] = []
        self._named: list[str] = []
        self._getters: list[Callable[..., Any]] = []
        self._meant: list[object] = []
        self._known: set[tuple[int, str]] = set()
        self._absent: list[Callable[..., bool]] = []
        self._unmet: list[frozenset[str]] = []
        self._sized: list[Mapping[str, Any]] = []
        self._heirs: list[type] = []
        self._slots: list[tuple[object, str, object]] = []
        self._arrays: list[tuple[Any, bytes]] = []
        self._caches: list[tuple[functools._lru_cache_wrapper[Any], list[object], set[int]]] = []
        self._saved: list[list[object]] | None = None

    def add_dict(self, kept: Mapping[Any, Any]) -> None:
        """A dictionary, all of it."""
        if not kept and type(kept) in _BUILT_IN:
            self._empty.append(kept)
            return
        self.add_keys(kept)
        self._valued.append(kept)
        self._values.extend(kept.values())

    def add_keys(self, kept: Mapping[Any, Any]) -> None:
        """What keys a dictionary has."""
        if not kept and type(kept) in _BUILT_IN:
            self._empty.append(kept)
            return
        self._keyed.append(kept)
        self._keys.extend(kept)

    def add_names(self, space: Mapping[str, Any], names: Iterable[str]) -> None:
        """What some names stand for in a namespace."""
        for name in names:
            if (id(space), name) not in self._known:
                self._known.add((id(space), name))
                self._named.append(name)
                self._getters.append(space.get)
                self._meant.append(space.get(name, ABSENT))

    def add_absent(self, space: Mapping[str, Any], names: frozenset[str]) -> None:
        """Names that a namespace doesn't have."""
        if names:
            self._absent.append(space.keys().isdisjoint)
            self._unmet.append(names)

    def add_size(self, space: Mapping[str, Any]) -> None:
        """How many names a namespace has, and the last of them: a new one comes after all others. That is cheaper than
        `add_absent`, and wrong only if others are taken away at the same time."""
        self._sized.append(space)

    def add_bases(self, kind: type) -> None:
        """The classes that a class takes its attributes from."""
        self._heirs.append(kind)

    def add_list(self, items: Collection[Any]) -> None:
        """A list, set or deque."""
        self._lists.append(items)

    def add_cell(self, cell: Any) -> None:
        """A variable of a closure."""
        self._cells.append(cell)

    def add_empty_cell(self, cell: types.CellType) -> None:
        """A variable of a closure that is none yet."""
        self._none_yet.append(cell)

    def add_function(self, function: Any) -> None:
        """Code and defaults of a function."""
        self._functions.append(function)

    def add_class(self, item: object) -> None:
        """What class an object is of."""
        self._classed.append(item)

    def add_slot(self, item: object, name: str) -> None:
        """One attribute that lies in no dictionary."""
        self._slots.append((item, name, getattr(item, name, ABSENT)))

    def add_bytes(self, item: Any) -> None:
        """Something that `raw` gives the bytes of."""
        self._arrays.append((item, raw(item)))

    def add_cache(self, cache: functools._lru_cache_wrapper[Any], entries: list[object]) -> None:
        """What is in a cache; one that is gone would be computed anew."""
        self._caches.append((cache, entries, set(map(id, entries))))

    def done(self) -> None:
        """Keep how everything is now."""
        self._saved = self._now()

    def holds(self) -> bool:
        """Whether all is as it was at `done`."""
        try:
            return (
                self._saved is not None
                and not any(self._empty)
                and all(map(operator.call, self._absent, self._unmet))
                and all(map(operator.eq, self._none_yet, repeat(types.CellType())))
                and all(map(operator.is_, chain.from_iterable(self._keyed), self._keys))
                and all(map(operator.is_, chain.from_iterable(map(_values, self._valued)), self._values))
                and all(map(_same, self._saved, self._now()))
                and all(map(operator.is_, map(operator.call, self._getters, self._named, repeat(ABSENT)), self._meant))
                and all(getattr(item, name, ABSENT) is value for item, name, value in self._slots)
                and all(raw(item) == kept for item, kept in self._arrays)
                and all(map(_has_the_same, self._caches))
            )
        except Exception:  # another thread changes it just now; a cell is empty; an object raises what it likes
            return False

    def _now(self) -> list[list[object]]:
        """Lists of objects and facts, to be compared one by one with those of another time."""
        return [
            list(map(len, self._keyed)),
            [list(map(of, self.tensors)) for of in _ABOUT_TENSORS],
            list(map(len, self._lists)),
            list(map(len, self._sized)),
            _Objects(map(_last, self._sized)),
            _Objects(map(_bases, self._heirs)),
            _Objects(chain.from_iterable(self._lists)),
            _Objects(map(_content, self._cells)),
            _Objects(map(type, self._classed)),
            *(_Objects(map(of, self._functions)) for of in _ABOUT_FUNCTIONS),
        ]


class _Objects(list[object]):
    """Objects that are compared by identity."""


_values = operator.methodcaller("values")
_content = operator.attrgetter("cell_contents")
_bases = operator.attrgetter("__mro__")


def _last(space: Mapping[str, Any]) -> object:
    return next(reversed(space), None)  # type: ignore[arg-type]  # of a class it is a proxy


def _same(old: list[object], new: list[object]) -> bool:
    if isinstance(old, _Objects):
        return len(old) == len(new) and all(map(operator.is_, old, new))
    return old == new


def _has_the_same(known: tuple[functools._lru_cache_wrapper[Any], list[object], set[int]]) -> bool:
    """The entries are kept, so that no other object gets the identity of one."""
    cache, _, ids = known
    return ids == set(map(id, entries_of(cache)))


def raw(item: Any) -> bytes:
    """The bytes of an array, a value of NumPy's, a bytearray or a memoryview, with shape and type; of a stream in
    memory, where it stands besides."""
    if isinstance(item, io.StringIO | io.BytesIO):
        state: Any = () if item.closed else item.__getstate__()
        return repr(state[:3]).encode("utf-8", "surrogatepass")
    if isinstance(item, np.ndarray | np.generic):
        return f"{item.dtype.str}{item.shape}".encode() + item.tobytes()
    return bytes(item)
