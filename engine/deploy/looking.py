"""What a walk keeps of what it meets: marks of it, what is to be looked into next, what is watched, what can't be."""

from __future__ import annotations

import builtins
import importlib
import sys
import types
from collections.abc import Mapping
from typing import Any

from engine.deploy.codes import IMPORTS, Said
from engine.deploy.kinds import PLAIN, Same, bits, content_of, is_installed_class
from engine.deploy.recording import Record
from engine.deploy.restoring import Holder
from engine.deploy.spaces import FIRST_NAMES, Space

_IMPORTING = (importlib.import_module, builtins.__import__, importlib.__import__)


class Looking:
    """The state of one walk, and how a value is taken into it: each is looked into once."""

    def __init__(self, codes: dict[int, Said], holders: list[Holder] | None) -> None:
        self.marks: list[object] = []
        self._record = Record(holders)
        self.watch = self._record.watch
        self.problem = ""
        self._codes = codes
        self._ordinals: dict[int, int] = {}
        self._kept: list[object] = []
        self._next: list[tuple[Any, str]] = []
        self._later: list[tuple[Any, str]] = []
        self._installed = False
        self.names: set[str] = set(FIRST_NAMES)
        self._spaces: list[Space] = []
        self._classes: set[int] = set()
        self._called: set[int] = set()
        self._calls_any = False
        self._texts = False
        self._asks_any = False
        self._asked: list[tuple[object, str]] = []
        self._count = 0

    def _refuse(self, problem: str) -> None:
        if not self._installed:
            self.problem = self.problem or problem

    def _refuse_kind(self, value: Any, name: str) -> None:
        called = f" ({name})" if name else ""
        self._refuse(f"it reaches a {type(value).__name__}{called}, and a change inside it can't be seen")

    def _refuse_imports(self, value: Any, name: str) -> None:
        """Refuse Python's table of modules, and a function that imports if no code calls it by a name of `IMPORTS`."""
        if value is sys.modules:
            self._refuse("it reads sys.modules, and a module that comes there later can't be seen")
        elif value in _IMPORTING and name not in IMPORTS:
            self._refuse("it imports modules whose names its code doesn't say, and these can't be watched")

    def _look(self, value: Any, name: str) -> None:
        """Mark a value, and note it to be entered later if it is seen for the first time."""
        kind = type(value)
        if kind in PLAIN:
            self.marks.append(kind)
            self.marks.append(bits(value))
            return
        if kind in (dict, types.FunctionType, types.BuiltinFunctionType):
            self._refuse_imports(value, name)
        if value is sys.modules and not self._installed:
            # it is refused, and from there on it would be every module of the process
            self.marks.append(Same(value))
            return
        # the variable __class__ is super()'s: nothing is made by it
        if isinstance(value, type) and not self._installed and name != "__class__":
            self._called.update(id(one) for one in value.__mro__ if not is_installed_class(one))
        known = self._ordinals.get(id(value))
        if known is not None:
            self.marks.append(known)
            return
        self._ordinals[id(value)] = len(self._ordinals)
        self._kept.append(value)
        self.marks.append(kind if kind in (tuple, list, dict, set) else Same(value))
        (self._later if self._installed else self._next).append((value, name))

    def _items(self, kept: Mapping[str, Any]) -> None:
        self._record.dictionary("", kept)
        self.marks.append(len(kept))
        for name, value in kept.items():
            self.marks.append(name)
            self._look(value, name)

    def _cell(self, name: str, cell: types.CellType) -> None:
        content = content_of(cell)
        self._record.cell(name, cell, content)
        self._look(content, name)
