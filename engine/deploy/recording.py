"""What is watched is also held: each thing that a walk saw is noted once for both, so that no change of what counts by
what is in it can be left behind by a trial, or be overlooked in one.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from engine.deploy.restoring import Holder, contents
from engine.deploy.watching import ABSENT, OF_FUNCTIONS, Watch


class Record:
    """The watch of a walk, and `holders`: what would have to be put back after a trial; None if there is none."""

    def __init__(self, holders: list[Holder] | None) -> None:
        self.watch = Watch()
        self._holders = holders

    def hold(self, name: str, item: Any, kept: Any, version: int = -1, *, named: bool = False) -> None:
        """Keep what something holds now; of a namespace, with `named`, what some names stand for."""
        if self._holders is not None:
            self._holders.append(Holder(name, item, kept, version, named))

    def _hold_attributes(self, item: object, kept: dict[str, Any]) -> None:
        if self._holders is not None:
            self._holders.append(Holder("", item, kept, attributes=True))

    def _hold_all(self, name: str, item: Any) -> None:
        if self._holders is not None:
            self.hold(name, item, contents(item))

    def dictionary(self, name: str, kept: Mapping[Any, Any], *, keys_only: bool = False) -> None:
        """A dictionary; with `keys_only` its values are watched elsewhere, by those names that code says."""
        if keys_only:
            self.watch.add_keys(kept)
        else:
            self.watch.add_dict(kept)
        if isinstance(kept, dict):
            self._hold_all(name, kept)

    def items(self, name: str, value: Any) -> None:
        """A list, a set or a deque; a frozen set, which nothing changes, is watched alone."""
        self.watch.add_list(value)
        if not isinstance(value, frozenset):
            self._hold_all(name, value)

    def content(self, name: str, value: Any) -> None:
        """Something that counts by the bytes in it."""
        self.watch.add_bytes(value)
        self._hold_all(name, value)

    def slot(self, value: object, slot: str) -> None:
        """An attribute that lies in no dictionary."""
        self.watch.add_slot(value, slot)
        self._hold_attributes(value, {slot: getattr(value, slot, ABSENT)})

    def class_of(self, value: object) -> None:
        """What class an object is of."""
        self.watch.add_class(value)
        if getattr(value, "__class__", None) is type(value):
            self._hold_attributes(value, {"__class__": type(value)})

    def function(self, function: types.FunctionType) -> None:
        """Code and defaults of a function."""
        self.watch.add_function(function)
        self._hold_attributes(function, {part: getattr(function, part) for part in OF_FUNCTIONS})

    def cell(self, name: str, cell: types.CellType, content: object) -> None:
        """A variable of a closure."""
        if content is ABSENT:
            self.watch.add_empty_cell(cell)
        else:
            self.watch.add_cell(cell)
        self.hold(name, cell, content)

    def cache(self, name: str, cache: functools._lru_cache_wrapper[Any], entries: list[object]) -> None:
        """A cache of the user's: its entries are never taken from it, see `caches`."""
        self.watch.add_cache(cache, entries)
        self.hold(name, cache, None)

    def tensor(self, name: str, tensor: torch.Tensor) -> None:
        """A tensor with its attributes; its values are held, but for those of a parameter."""
        self.watch.tensors.append(tensor)
        self.dictionary("", tensor.__dict__, keys_only=True)
        if self._holders is not None and not isinstance(tensor, nn.Parameter):
            version = -1 if tensor.is_inference() else tensor._version
            self.hold(name, tensor, tensor.detach().clone(), version)
