"""What a call depends on besides its arguments, and putting that back after the call was tried out.

A capture freezes the values that Python code reads: attributes of modules, variables of a closure, globals, hooks, the
autocast state. `Guard.state` gives them as one comparable value at every call, in microseconds a module; `Saved` keeps
them, with the tensors that the code holds, so that trying a call out has no effect on the user's data.

Seen are: the tree of modules with their classes, hooks, modes and attributes; the cells, defaults and named globals of
functions, and what these hold in turn. Numbers, strings, tuples, lists, sets, dictionaries, dataclasses and namespaces
count by content, everything else by identity. Parameters and buffers of a module are `watching`'s to follow.
"""

from __future__ import annotations

import functools
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from engine.capture.export import allows_tf32

LARGEST = 256
"""Containers with more items count by identity and size: they are tables, and reading them at every call costs time."""
DEEPEST = 6
_PLAIN = frozenset({int, float, bool, str, types.NoneType, complex, bytes, torch.dtype, torch.device})
_CONTAINERS = frozenset({list, set, frozenset, dict, OrderedDict})
"""Of classes made from these nobody knows what their methods do: such objects count by identity."""
_FOREIGN = frozenset({"torch", "builtins", "logging", "threading", "numpy", "functools", "triton"})
_UNREAD = frozenset(
    {
        *("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_backward_pre_hooks"),
        *("_backward_hooks", "_is_full_backward_hook", "_state_dict_hooks", "_state_dict_pre_hooks"),
        *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_compiled_call_impl"),
    }
)
"""What nn.Module keeps of itself that a forward call doesn't read, or that is looked at in its own way."""


class _Same:
    """An object that is equal to itself alone; it is kept, so that no other takes its address."""

    __slots__ = ("item",)

    def __init__(self, item: object) -> None:
        self.item = item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.item is other.item

    def __hash__(self) -> int:
        return id(self.item)


def ambient() -> tuple[object, ...]:
    """What of torch's own state decides what a call computes: autocast and its dtypes, default dtype, TF32."""
    kinds = ("cuda", "cpu")
    casts = tuple(torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None for kind in kinds)
    return (*casts, torch.get_default_dtype(), allows_tf32())


@dataclass(slots=True)
class Guard:
    """Gives the state of one function; `names` are the globals that each code object names."""

    function: Callable[..., Any]
    names: dict[int, tuple[types.CodeType, tuple[str, ...]]] = field(default_factory=dict)

    def state(self) -> tuple[object, ...]:
        """Equal as long as the function would do the same with the same arguments and weights."""
        walk = _Walk(self.names, isinstance(self.function, nn.Module), None)
        walk.look(self.function, 0)
        return tuple(walk.marks)

    def saved(self) -> Saved:
        """Keep what the function could change now."""
        holders: list[_Holder] = []
        _Walk(self.names, False, holders).look(self.function, 0)
        return Saved(holders)


@dataclass(frozen=True, slots=True)
class _Holder:
    """Something that holds values, what it is called, and its content; of a dictionary of globals, the named ones."""

    name: str
    item: Any
    kept: Any
    version: int = -1
    named: bool = False


class Saved:
    """What a function holds, as it was. Tensors are copied: buffers, constants, attributes; parameters are not."""

    def __init__(self, holders: list[_Holder]) -> None:
        self._holders = holders

    def restore(self) -> list[str]:
        """Put everything back that is another now; the names of what that is."""
        return [name for holder in self._holders for name in _restored(holder)]


def _restored(holder: _Holder) -> Iterator[str]:
    item, kept = holder.item, holder.kept
    if isinstance(item, torch.Tensor):
        if not _unchanged(item, kept, holder.version):
            with torch.no_grad():
                item.copy_(kept)
            yield holder.name
    elif isinstance(item, types.CellType):
        if _cell(item) is not kept:
            item.cell_contents = kept
            yield holder.name
    elif isinstance(item, list | set):
        now, old = list(item), list(kept)
        if len(now) != len(old) or any(a is not b for a, b in zip(now, old, strict=True)):
            alike = _alike(now, old)
            item.clear()
            item.extend(old) if isinstance(item, list) else item.update(old)
            if not alike:
                yield holder.name
    else:
        names = kept if holder.named else {**kept, **item}
        changed = [name for name in names if item.get(name, _ABSENT) is not kept.get(name, _ABSENT)]
        for name in changed:
            now, old = item.get(name, _ABSENT), kept.get(name, _ABSENT)
            if old is _ABSENT:
                del item[name]
            else:
                item[name] = old
            if not _alike(now, old):
                yield str(name)


_ABSENT = object()


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
    return type(now) in _PLAIN and bool(now == old)


def _parts(value: Any) -> tuple[object, ...]:
    if isinstance(value, types.MethodType):
        return value.__func__, value.__self__
    return value.func, value.args, value.keywords


def _unchanged(item: torch.Tensor, kept: torch.Tensor, version: int) -> bool:
    return torch.equal(item, kept) if item.is_inference() else item._version == version


def _cell(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty yet
        return _ABSENT


class _Walk:
    """One look at everything: `marks` to compare, and, where `holders` is a list, what would have to be put back."""

    __slots__ = ("holders", "marks", "names", "seen", "watched")

    def __init__(self, names: dict[int, Any], watched: bool, holders: list[_Holder] | None) -> None:
        self.names = names
        self.watched = watched
        self.holders = holders
        self.marks: list[object] = []
        self.seen: set[int] = set()

    def look(self, value: Any, depth: int, name: str = "") -> None:
        kind = type(value)
        if kind in _PLAIN:
            self.marks.append(kind)
            self.marks.append(value)
            return
        self.marks.append(_Same(value) if kind not in (tuple, list, dict, set) else kind)
        if depth > DEEPEST or kind is type or id(value) in self.seen:
            return
        self.seen.add(id(value))
        if isinstance(value, nn.Module):
            self._module(value)
        elif isinstance(value, torch.Tensor):
            self._tensor(value, name)
        elif kind in _CONTAINERS or isinstance(value, tuple):
            self._container(value, depth, name)
        elif isinstance(value, types.FunctionType):
            self._function(value, depth)
        elif isinstance(value, types.MethodType | functools.partial):
            for part in _parts(value):
                self.look(part, depth + 1)
        elif depth == 0 or self._is_open(value):
            self._attributes(value, depth)
            if depth == 0:
                self.look(type(value).__dict__.get("__call__"), depth + 1)

    def _is_open(self, value: Any) -> bool:
        """Whether an object counts by content; when values are kept, so does every object of the user's own classes."""
        kind = type(value)
        if isinstance(value, types.SimpleNamespace) or hasattr(kind, "__dataclass_fields__"):
            return True
        return self.holders is not None and _root(kind) not in _FOREIGN and not isinstance(value, types.ModuleType)

    def _module(self, module: nn.Module) -> None:
        """Modules lie in each other as deep as they like: depth counts what lies in one of them."""
        # torch.fx keeps texts and caches in its modules, and writes them anew when it likes
        kept = {} if isinstance(module, torch.fx.GraphModule) else module.__dict__
        self._hold(kept)
        self.marks.append(type(module))
        for name, value in kept.items():
            if name in _UNREAD:
                continue
            self.marks.append(name)
            if type(value) in _PLAIN:
                self.marks.append(type(value))
                self.marks.append(value)
            else:
                self.look(value, 1, name)
        if not self.watched:
            for tensors in (module._parameters, module._buffers):
                self._hold(tensors)
                for name, tensor in tensors.items():
                    self.marks.append(_Same(tensor))
                    if tensors is module._buffers and tensor is not None:
                        self._tensor(tensor, name)
        for name, inner in module._modules.items():
            self.marks.append(name)
            self.look(inner, 1)
        forward = type(module).forward
        if _root(type(module)) != "torch":
            self.look(forward, 1)
        self._hold(module._modules)

    def _function(self, function: types.FunctionType, depth: int) -> None:
        self.marks.append(_Same(function.__code__))
        if _is_foreign(function.__module__):
            return
        for value in function.__defaults__ or ():
            self.look(value, depth + 1)
        for name, value in (function.__kwdefaults__ or {}).items():
            self.look(value, depth + 1, name)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if self.holders is not None:
                self.holders.append(_Holder(name, cell, _cell(cell)))
            self.look(_cell(cell), depth + 1, name)
        space, named = function.__globals__, self._named(function.__code__)
        if self.holders is not None:
            kept = {name: space[name] for name in named if name in space}
            self.holders.append(_Holder("", space, kept, named=True))
        for name in named:
            if name in space:
                self._global(space[name], named, depth, name)

    def _global(self, value: Any, named: tuple[str, ...], depth: int, name: str) -> None:
        self.marks.append(name)
        self.look(value, depth + 1, name)
        if isinstance(value, types.ModuleType) and not _is_foreign(value.__name__):
            space = vars(value)
            for inner in named:
                if inner in space:
                    self.look(space[inner], depth + 1, inner)

    def _named(self, code: types.CodeType) -> tuple[str, ...]:
        """The names that the code, and code inside it, could look up among globals."""
        known = self.names.get(id(code))
        if known is None:
            inner = [self._named(part) for part in code.co_consts if isinstance(part, types.CodeType)]
            known = code, tuple(dict.fromkeys((*code.co_names, *(name for names in inner for name in names))))
            self.names[id(code)] = known
        return known[1]

    def _container(self, value: Any, depth: int, name: str) -> None:
        self.marks.append(len(value))
        if len(value) > LARGEST:
            self.marks.append(_Same(value))
            return
        if self.holders is not None and isinstance(value, list | set | dict):
            self.holders.append(_Holder(name, value, value.copy()))
        for item in value:
            self.look(item, depth + 1, name)
            if isinstance(value, dict):
                self.look(value[item], depth + 1, name)

    def _attributes(self, value: Any, depth: int) -> None:
        kept = getattr(value, "__dict__", None)
        if type(kept) is not dict:
            return
        self._hold(kept)
        for name, inner in kept.items():
            self.marks.append(name)
            self.look(inner, depth + 1, name)

    def _hold(self, kept: dict[str, Any]) -> None:
        if self.holders is not None:
            self.holders.append(_Holder("", kept, dict(kept)))

    def _tensor(self, tensor: torch.Tensor, name: str) -> None:
        if self.holders is not None and not isinstance(tensor, nn.Parameter):
            version = -1 if tensor.is_inference() else tensor._version
            self.holders.append(_Holder(name, tensor, tensor.detach().clone(), version))


def _root(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _is_foreign(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _FOREIGN
