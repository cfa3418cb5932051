"""Everything that a function reaches when it is called: what decides what it computes, besides its arguments.

From the function the walk goes to its closure, defaults and attributes, to the globals that its code names, to what
these hold, and so on: modules with their parameters, buffers and hooks, bound methods, partials, containers, objects
with their attributes, slots and classes, tensors. Of objects, classes and Python modules the names count that any of
the code says; where it takes names that it computes (`getattr`, `vars`), all attributes of objects do, and of the
user's own classes and modules.

It leaves three things: `marks`, equal as long as the function would do the same; `watch`, by which that is asked
cheaply; and `problem`, in words, if it reaches what can't be watched. Python's, torch's and NumPy's own code is taken
as it is: what these keep for themselves isn't looked into.
"""

from __future__ import annotations

import builtins
import collections
import contextvars
import functools
import importlib
import operator
import sys
import threading
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.fx._lazy_graph_module import _LazyGraphModule

from engine.deploy.caches import code_of, entries_of
from engine.deploy.codes import ASK, MATCHED, Said, imported, names_of_getter, said
from engine.deploy.compiled import HOOKS, CompiledModule
from engine.deploy.kinds import (
    BINDING,
    BYTES,
    CLOSED,
    UNREAD,
    Same,
    alias_parts,
    can_change,
    content_of,
    in_library,
    is_alias,
    is_installed,
    is_installed_class,
    odd_kind,
    parts_of,
    root_of,
)
from engine.deploy.looking import Looking
from engine.deploy.spaces import ALL_NAMES, ALL_NAMES_OF_OWN, OF_CLASSES, Space, is_put_there
from engine.deploy.unseen import ASKED, changes_unseen, keeps_unseen, slots_of
from engine.deploy.watching import ABSENT, about, raw

LARGEST = 4096
"""Items of a container, or bytes of an array: beyond that it is a table, and looking at it at every call costs."""
MOST = 20_000
"""Objects besides modules and tensors, for the same reason."""
MOST_INSTALLED = 2_000
"""The same for what is reached only through the globals of installed packages: beyond that they are as libraries."""
_OWN = "engine"


class Reach(Looking):
    """One walk. `holders`, if a list, gets what would have to be put back after the function was tried out."""

    def from_(self, function: object) -> Reach:
        """Walk through everything that the function reaches."""
        self._look(function, "")
        self._class(nn.Parameter)
        self._space(builtins, vars(builtins))
        self._drain(self._next, MOST)
        if self._count > MOST:
            self._refuse(f"it reaches more than {MOST} objects, too many to look at between calls")
        for value, name in self._asked:
            if changes_unseen(value, self.names):
                self._refuse_kind(value, name)
        self._installed = True
        self._drain(self._later, self._count + MOST_INSTALLED)
        for space in self._spaces:
            space.watch_others(self._record, self.names, self._asks_any)
        self.watch.done()
        return self

    def _drain(self, queue: list[tuple[Any, str]], most: int) -> None:
        widens = True
        while widens and self._count <= most:
            while queue and self._count <= most:
                self._enter(*queue.pop())
            widens = self._widen()

    def _enter(self, value: Any, name: str) -> None:
        if isinstance(value, torch.Tensor):
            self._tensor(value, name)
        elif isinstance(value, nn.Module):
            self._module(value)
        else:
            self._count += 1
            self._enter_object(value, name)

    def _enter_object(self, value: Any, name: str) -> None:
        if isinstance(value, list | tuple | set | frozenset | dict | collections.deque | types.MappingProxyType):
            self._container(value, name)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, BINDING):
            self._binding(value, name)
        elif isinstance(value, types.CellType):
            self._cell(name, value)
        elif isinstance(value, types.ModuleType):
            self._space(value, vars(value))
            if not is_installed_class(type(value)):
                self._class(type(value))
        else:
            self._enter_other(value, name)

    def _enter_other(self, value: Any, name: str) -> None:
        if isinstance(value, (*BYTES, np.generic)):
            self._bytes(value, name)
        elif isinstance(value, contextvars.ContextVar | threading.local):
            self._refuse_kind(value, name)
        elif root_of(type(value)) == _OWN:
            self._look(getattr(value, "function", None), name)
        elif isinstance(value, type):
            self._class(value)
        elif is_alias(value):
            for part in alias_parts(value):
                self._look(part, name)
        elif isinstance(value, operator.attrgetter):
            self.names.update(names_of_getter(value))
        elif changes_unseen(value, ()):
            self._refuse_kind(value, name)
        elif isinstance(value, ASKED):
            self._asked.append((value, name))
        elif root_of(type(value)) not in CLOSED:
            self._object(value, name)

    def _object(self, value: Any, name: str) -> None:
        kind, kept = type(value), getattr(value, "__dict__", None)
        root = root_of(kind)
        if keeps_unseen(kind):
            self._refuse_kind(value, name)
        if root == "torch" and (callable(value) or type(kept) is not dict):
            return
        self._record.class_of(value)
        self._class(kind)
        if type(kept) is dict:
            self._record.dictionary("", kept, keys_only=True)
            self._space(value, kept)
        slots = [slot for one in kind.__mro__ for slot in slots_of(one)]
        for slot in slots:
            self._record.slot(value, slot)
            self.marks.append(slot)
            self._look(getattr(value, slot, ABSENT), slot)
        if type(kept) is not dict and not slots and not in_library(root) and "__slots__" not in kind.__dict__:
            self._refuse_kind(value, name)

    def _class(self, kind: type) -> None:
        for one in kind.__mro__:
            if id(one) in self._classes:
                continue
            self._classes.add(id(one))
            if not in_library(root_of(one)):
                self.watch.add_bases(one)
                self.marks.append(tuple(map(Same, one.__mro__)))
                self._space(one, one.__dict__)
            elif not issubclass(one, torch.fx.GraphModule):
                if can_change(one):
                    self._space(one, one.__dict__)
            elif not issubclass(one, _LazyGraphModule):
                self.watch.add_names(one.__dict__, ("forward", "__call__"))
                self.marks.append(Same(one.__dict__.get("forward")))
            if not is_installed_class(type(one)):
                self._class(type(one))

    def _space(self, owner: object, names: Mapping[str, Any]) -> None:
        self._spaces.append(Space(owner, names, set()))

    def _widen(self) -> bool:
        """Look at what the names said so far stand for where they weren't looked up yet; whether there was any."""
        grew = False
        for space in list(self._spaces):
            found = space.meant(self.names, None if self._calls_any else self._called, self._texts, self._asks_any)
            if found:
                grew = True
                self._look_up(space, found)
        return grew

    def _look_up(self, space: Space, found: list[str]) -> None:
        space.seen.update(found)
        self.watch.add_names(space.names, found)
        values = {name: space.names.get(name, ABSENT) for name in found}
        space.hold(self._record, values)
        for name, value in values.items():
            self.marks.append(name)
            if name == MATCHED and isinstance(value, tuple):
                self.names.update(text for text in value if isinstance(text, str))
            if space.library and not isinstance(value, torch.Tensor):
                self.marks.append(Same(value))
            if not space.library or isinstance(value, torch.Tensor | types.ModuleType) or is_put_there(value):
                self._look(value, name)

    def _module(self, module: nn.Module) -> None:
        if isinstance(module, CompiledModule):
            self._look(module.original, "")
            for name in HOOKS:
                self._look(module.__dict__.get(name), name)
            return
        if isinstance(module, torch.jit.ScriptModule):
            self._refuse_kind(module, "made by torch.jit")
            return
        # torch.fx keeps texts and caches in its modules, and writes them anew when it likes
        kept = {} if isinstance(module, torch.fx.GraphModule) else module.__dict__
        kind = type(module)
        self._record.dictionary("", kept)
        self._record.class_of(module)
        self.marks.append(kind)
        self._class(kind)
        if not in_library(root_of(kind)):
            self._look(kind.forward, "forward")
        for name, value in kept.items():
            if name not in UNREAD:
                self.marks.append(name)
                self._look(value, name)
        for tensors in (module._parameters, module._buffers):
            self._items(tensors)
        for name, value in vars(module).items() if not kept else ():
            if isinstance(value, torch.Tensor):
                self._look(value, name)
        self._items(module._modules)

    def _function(self, function: types.FunctionType) -> None:
        self._record.function(function)
        self.marks.append(Same(function.__code__))
        for value in function.__defaults__ or ():
            self._look(value, "")
        if function.__kwdefaults__:
            self._items(function.__kwdefaults__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._cell(name, cell)
        self._items(function.__dict__)
        space = function.__globals__
        if in_library(space.get("__name__")):
            return
        says = said(function.__code__, self._codes)
        self.names.update(says.names)
        self.watch.add_names(space, says.names)
        here = {name: space[name] for name in says.names if name in space}
        held = here if is_installed(function) else {name: space.get(name, ABSENT) for name in says.names}
        self._record.hold("", space, held, named=True)
        within, self._installed = self._installed, self._installed or is_installed(function)
        for name, value in here.items():
            self.marks.append(name)
            self._look(value, name)
        if not self._installed:
            self._of_own(function, [name for name in says.names if name not in space], says)
        self._installed = within

    def _binding(self, value: Any, name: str) -> None:
        """What stands for others, with attributes of its own."""
        if isinstance(value, functools._lru_cache_wrapper):
            self._cache(value, name)
        elif isinstance(value, operator.methodcaller):
            self.names.update(names_of_getter(value))
        elif isinstance(value, types.BuiltinMethodType) and value.__name__ in ALL_NAMES_OF_OWN:
            self.names.update(ALL_NAMES)
        elif isinstance(value, types.BuiltinMethodType) and value.__name__ in ASK and not self._installed:
            self.names.update(ALL_NAMES)
            self._asks_any = True
        if isinstance(value, functools.partial | functools._lru_cache_wrapper):
            self._record.dictionary("", value.__dict__, keys_only=True)
            self._space(value, value.__dict__)
        for part in parts_of(value):
            self._look(part, name)
        if not in_library(root_of(type(value))):
            self._object(value, name)

    def _of_own(self, function: types.FunctionType, names: list[str], says: Said) -> None:
        """What counts of the user's own code besides: which special methods it calls, and what it finds outside its
        globals: modules that it imports when it runs, and built-in names."""
        self._texts = self._texts or says.texts
        self._calls_any = self._calls_any or not OF_CLASSES.isdisjoint(names)
        self.names.update(ALL_NAMES if not ALL_NAMES_OF_OWN.isdisjoint(names) else ())
        if says.imports_any:
            self._refuse_imports(importlib.import_module, "")
        if "modules" in says.names and ("sys" in says.names or self._has_sys(function, says)):
            self._refuse_imports(sys.modules, "")
        if "__subclasses__" in says.names:
            self._refuse("it asks a class for its subclasses, and one that comes later can't be seen")
        self._asks_any = self._asks_any or says.asks_any
        own: Any = function
        modules, built_in = sys.modules, own.__builtins__
        asked = [(name, modules) for name in imported(function, says.imports)]
        for name, space in (*asked, *((name, built_in) for name in names if name in built_in)):
            value = space.get(name, ABSENT)
            self.watch.add_names(space, (name,))
            self.marks.append(name)
            if in_library(getattr(value, "__module__", None)) and callable(value):
                self.marks.append(Same(value))
            else:
                self._look(value, name)

    def _has_sys(self, function: types.FunctionType, says: Said) -> bool:
        """Whether the module sys is one of its variables, by whatever name."""
        held = (function.__globals__.get(name) for name in says.names)
        return any(value is sys for value in (*held, *map(content_of, function.__closure__ or ())))

    def _container(self, value: Any, name: str) -> None:
        self.marks.append(len(value))
        if len(value) > LARGEST:
            self._refuse(
                f"it reaches a {type(value).__name__} of {len(value)} items, too many to look at between calls"
            )
            return
        if isinstance(value, dict | types.MappingProxyType):
            self._record.dictionary(name, value)
        elif not isinstance(value, tuple):
            self._record.items(name, value)
        for item in list(value):
            self._look(item, name)
            if isinstance(value, dict | types.MappingProxyType):
                self._look(value[item], name)
        self._subclass(value, name)

    def _subclass(self, value: Any, name: str) -> None:
        """What a container of the user's own class, or of one with a factory, holds besides its items."""
        if isinstance(value, collections.defaultdict):
            self._record.slot(value, "default_factory")
            self._look(value.default_factory, name)
        if not in_library(root_of(type(value))):
            self._object(value, name)

    def _bytes(self, value: Any, name: str) -> None:
        if type(value) not in BYTES:
            self._refuse_kind(value, "")
            return
        size = value.nbytes if isinstance(value, np.ndarray | memoryview) else len(raw(value))
        if size > LARGEST or (isinstance(value, np.ndarray) and value.dtype.hasobject):
            self._refuse(f"it reaches a {type(value).__name__} of {size} bytes, too many to look at between calls")
            return
        self._record.content(name, value)
        self.marks.append(raw(value))

    def _cache(self, cache: functools._lru_cache_wrapper[Any], name: str) -> None:
        """A cache is a container that can't be put back: see `caches`. Those of packages are cleared instead."""
        computes = cache.__wrapped__
        if self._installed or (isinstance(computes, types.FunctionType) and is_installed(computes)):
            self._record.hold(name, cache, cache.cache_info().misses)
            return
        if code_of(cache) is None:
            self._refuse(f"it reaches a cache of functools' ({name}) of what is no plain function")
        entries = entries_of(cache)
        if len(entries) > LARGEST:
            self._refuse(
                f"it reaches a cache of {len(entries) // 2} results ({name}), too many to look at between calls"
            )
            return
        self._record.cache(name, cache, entries)
        self.marks.append(frozenset(map(Same, entries)))
        for one in entries:
            self._look(one, name)

    def _tensor(self, tensor: torch.Tensor, name: str) -> None:
        odd = odd_kind((tensor,))
        if odd:
            self._refuse(f"it reaches a tensor of the kind {odd}{f' ({name})' if name else ''}")
            return
        self._record.tensor(name, tensor)
        self.marks.append(about(tensor))
        if tensor.__dict__:
            self._space(tensor, tensor.__dict__)
