"""Putting back what a function holds after it was tried out: a trial has no effect on the user's data."""

from __future__ import annotations

import collections
import functools
import io
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from engine.deploy.kinds import BYTES, content_of
from engine.deploy.watching import ABSENT, raw

_COMPARED = (int, float, bool, str, types.NoneType, complex, bytes, torch.dtype, torch.device)


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that holds values, what it is called, and its content; of a namespace, the `named` ones. With
    `attributes` the content is some of its attributes, whatever else it is."""

    name: str
    item: Any
    kept: Any
    version: int = -1
    named: bool = False
    attributes: bool = False


class Saved:
    """What a function holds, as it was. Tensors are copied: buffers, constants, attributes; parameters are not."""

    def __init__(self, holders: list[Holder]) -> None:
        self._holders = holders

    @property
    def caches(self) -> list[functools._lru_cache_wrapper[Any]]:
        """The user's caches of functools' that it reaches, whose entries can't be put back; those of packages are
        cleared instead."""
        caches = [one for one in self._holders if isinstance(one.item, functools._lru_cache_wrapper)]
        return [one.item for one in caches if one.kept is None]

    def restore(self) -> list[str]:
        """Put everything back that is another now; the names of what that is."""
        return [name for holder in self._holders for name in _restored(holder)]


def contents(item: Any) -> Any:
    """A copy of what a container, an array or a stream in memory holds, from which `Saved` restores it."""
    if isinstance(item, dict):
        return {key: dict.__getitem__(item, key) for key in _base(item).__iter__(item)}
    if isinstance(item, np.ndarray):
        return item.copy()
    if isinstance(item, io.StringIO | io.BytesIO):
        return None if item.closed else item.__getstate__()
    return list(item) if isinstance(item, list | set | collections.deque) else bytes(item)


def _restored(holder: Holder) -> Iterator[str]:
    item, kept = holder.item, holder.kept
    if holder.attributes or isinstance(item, type):
        yield from _restored_attributes(item, kept)
    elif isinstance(item, torch.Tensor):
        if not _unchanged(item, kept, holder.version):
            with torch.no_grad():
                item.copy_(kept)
            yield holder.name
    elif isinstance(item, functools._lru_cache_wrapper):
        # only of installed packages: what a trial put there may be no real tensor
        if kept is not None and item.cache_info().misses != kept:
            item.cache_clear()
    elif isinstance(item, types.CellType):
        if content_of(item) is not kept:
            if kept is ABSENT:
                del item.cell_contents
            else:
                item.cell_contents = kept
            yield holder.name
    elif isinstance(item, list | set | collections.deque):
        yield from _restored_items(holder)
    elif isinstance(item, BYTES):
        yield from _restored_bytes(holder)
    elif isinstance(item, dict):
        yield from _restored_names(holder)


def _restored_items(holder: Holder) -> Iterator[str]:
    item, old = holder.item, holder.kept
    now, base = list(item), _base(item)
    if len(now) != len(old) or any(a is not b for a, b in zip(now, old, strict=True)):
        base.clear(item)
        base.update(item, old) if base is set else base.extend(item, old)
        if not _alike(now, old):
            yield holder.name


def _restored_names(holder: Holder) -> Iterator[str]:
    """By the methods of the built-in kind: a kind of dictionary may have others of these names."""
    item, kept, base = holder.item, holder.kept, _base(holder.item)
    names = kept if holder.named else {**kept, **dict(dict.items(item))}
    for name in [n for n in names if dict.get(item, n, ABSENT) is not dict.get(kept, n, ABSENT)]:
        now, old = dict.get(item, name, ABSENT), dict.get(kept, name, ABSENT)
        if old is ABSENT and holder.named and isinstance(now, types.ModuleType):
            continue  # a module that was imported stays in the package that it lies in
        if old is ABSENT:
            base.__delitem__(item, name)
        else:
            base.__setitem__(item, name, old)
        if not _alike(now, old):
            yield str(name)
    if not holder.named and any(a is not b for a, b in zip(base.__iter__(item), kept, strict=True)):
        base.clear(item)
        for name, value in kept.items():
            base.__setitem__(item, name, value)
        yield holder.name


def _restored_bytes(holder: Holder) -> Iterator[str]:
    """In the same memory wherever that has the size, as others may look into it."""
    item, kept = holder.item, holder.kept
    if isinstance(item, np.ndarray):
        if raw(item) == raw(kept):
            return
        _put_into_array(item, kept)
    elif isinstance(item, io.StringIO | io.BytesIO):
        if contents(item) == kept:
            return
        if kept is not None and not item.closed:
            state: Any = item
            state.__setstate__(kept)
    elif bytes(item) == kept:
        return
    elif len(bytes(item)) == len(kept):
        memory = np.asarray(memoryview(item))
        if memory.flags.writeable:  # what is only to be read is put back with what owns it
            memory[...] = np.frombuffer(kept, memory.dtype).reshape(memory.shape)
    elif isinstance(item, bytearray):
        item[:] = kept
    else:
        del item[:]
        item.frombytes(kept)
    yield holder.name


def _put_into_array(item: Any, kept: np.ndarray[Any, Any]) -> None:
    if item.nbytes != kept.nbytes:
        item.resize(kept.shape, refcheck=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy would have a new array instead, and others hold this one
        if item.dtype != kept.dtype:
            item.dtype = kept.dtype
        if item.shape != kept.shape:
            item.shape = kept.shape
    locked = not item.flags.writeable
    item.flags.writeable = True
    item[...] = kept
    item.flags.writeable = not locked


def _base(item: Any) -> Any:
    """The built-in kind of a container."""
    kinds = (collections.OrderedDict, dict, list, set, collections.deque)
    return next(kind for kind in kinds if isinstance(item, kind))


def _restored_attributes(item: Any, kept: dict[str, Any]) -> Iterator[str]:
    """Of a class, of a function, or of an object with slots."""
    for name, old in kept.items():
        now = item.__dict__.get(name, ABSENT) if isinstance(item, type) else getattr(item, name, ABSENT)
        if now is old:
            continue
        # an object's own class may forbid it, as a frozen dataclass does
        change = type if isinstance(item, type) else object
        if old is ABSENT:
            change.__delattr__(item, name)
        else:
            change.__setattr__(item, name, old)
        if not _alike(now, old):
            yield name


def _alike(now: Any, old: Any) -> bool:
    """Whether the two are one, or equal copies: torch.export leaves such of lists and dictionaries."""
    if now is old:
        return True
    if type(now) is not type(old):
        return False
    if isinstance(now, list | tuple):
        return len(now) == len(old) and all(map(_alike, now, old))
    if isinstance(now, dict):
        return list(now) == list(old) and all(map(_alike, now.values(), old.values()))
    return type(now) in _COMPARED and bool(now == old)


def _unchanged(item: torch.Tensor, kept: torch.Tensor, version: int) -> bool:
    return torch.equal(item, kept) if item.is_inference() else item._version == version
