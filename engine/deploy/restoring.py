"""Putting back what a function holds after it was tried out: a trial has no effect on the user's data."""

from __future__ import annotations

import collections
import functools
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from engine.deploy.kinds import content_of
from engine.deploy.watching import ABSENT

_COMPARED = (int, float, bool, str, types.NoneType, complex, bytes, torch.dtype, torch.device)


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that holds values, what it is called, and its content; of a namespace, the `named` ones."""

    name: str
    item: Any
    kept: Any
    version: int = -1
    named: bool = False


class Saved:
    """What a function holds, as it was. Tensors are copied: buffers, constants, attributes; parameters are not."""

    def __init__(self, holders: list[Holder]) -> None:
        self._holders = holders

    def restore(self) -> list[str]:
        """Put everything back that is another now; the names of what that is."""
        return [name for holder in self._holders for name in _restored(holder)]


def _restored(holder: Holder) -> Iterator[str]:
    item, kept = holder.item, holder.kept
    if isinstance(item, torch.Tensor):
        if not _unchanged(item, kept, holder.version):
            with torch.no_grad():
                item.copy_(kept)
            yield holder.name
    elif isinstance(item, functools._lru_cache_wrapper):
        if item.cache_info().misses != kept:
            # what a trial put there may be no real tensor; that it is computed again changes nothing
            item.cache_clear()
    elif isinstance(item, types.CellType):
        if content_of(item) is not kept:
            if kept is ABSENT:
                del item.cell_contents
            else:
                item.cell_contents = kept
            yield holder.name
    elif isinstance(item, list | set | collections.deque):
        now, old = list(item), list(kept)
        if len(now) != len(old) or any(a is not b for a, b in zip(now, old, strict=True)):
            item.clear()
            item.update(old) if isinstance(item, set) else item.extend(old)
            if not _alike(now, old):
                yield holder.name
    elif isinstance(item, dict):
        yield from _restored_names(item, kept, holder.named)
    else:
        yield from _restored_attributes(item, kept)


def _restored_names(item: dict[Any, Any], kept: dict[Any, Any], named: bool) -> Iterator[str]:
    """By dict's own methods: a kind of dictionary may have others of these names."""
    names = kept if named else {**kept, **dict(dict.items(item))}
    for name in [n for n in names if dict.get(item, n, ABSENT) is not dict.get(kept, n, ABSENT)]:
        now, old = dict.get(item, name, ABSENT), dict.get(kept, name, ABSENT)
        if old is ABSENT:
            dict.__delitem__(item, name)
        else:
            dict.__setitem__(item, name, old)
        if not _alike(now, old):
            yield str(name)


def _restored_attributes(item: Any, kept: dict[str, Any]) -> Iterator[str]:
    """Of a class, or of an object with slots."""
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
