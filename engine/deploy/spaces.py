"""Namespaces that code reaches: which names of them it could mean, and how those are watched that aren't there yet.

A name that code says may come into a class or a Python module later, as may a method that is called without being
named. So of classes all names are watched, of Python modules those that code says and they don't have; of the hundreds
of names in what is torch's, NumPy's or Python's, how many there are and which is the last.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from engine.deploy.kinds import (
    BINDING,
    in_library,
    is_installed,
    is_installed_class,
    is_installed_module,
    is_library,
    is_special,
    of_library,
    root_of,
)
from engine.deploy.recording import Record
from engine.deploy.watching import ABSENT

ALL_NAMES = frozenset({"__dict__", "vars", "getattr", "attrgetter", "__getattribute__", "asdict", "copy", "deepcopy"})
"""Names by which code gets at attributes without saying theirs."""
ALL_NAMES_OF_OWN = frozenset({"format", "format_map", "astuple"})
"""The same, where it isn't the code of an installed package, which says them for messages."""
OF_CLASSES = frozenset({"__class__", "type"})
"""Names by which code gets at the class of an object, and could call it."""
FIRST_NAMES = frozenset({"forward", "__call__", "__getattr__"})
"""Names by which torch and Python look into classes and modules, without code that says them."""


@dataclass(slots=True)
class Space:
    """A namespace of which the names count that code says; `owner` is the class, module, tensor or object."""

    owner: object
    names: Mapping[str, object]
    seen: set[str]
    library: bool = field(init=False)

    def __post_init__(self) -> None:
        owner = self.owner
        self.library = in_library(root_of(owner)) if isinstance(owner, type) else is_library(owner)

    def meant(self, names: set[str], called: set[int] | None, texts: bool, computed: bool) -> list[str]:
        """Names in it that code could mean which says `names`, and weren't seen yet.

        `called` are identities of classes that the code gets hold of, and so may call, None: all; `texts`: it makes
        texts of objects; `computed`: it may ask for attributes whose names it computes, which are taken to be those of
        objects and of the user's own classes and modules.
        """
        if isinstance(self.owner, type) and not self.library:
            own = self._is_own()
            makes, texts = own and (called is None or id(self.owner) in called), own and texts
            all_of_it = computed and own
            said = [
                n
                for n, value in self.names.items()
                if n in names or is_special(n, value, makes, texts) or (all_of_it and not n.startswith("__"))
            ]
        elif isinstance(self.owner, type):
            own_ones = (n for n, value in self.names.items() if is_special(n, value) and is_put_there(value))
            said = [*(name for name in self.names if name in names), *own_ones]
        elif isinstance(self.owner, types.ModuleType) and not (computed and self._is_own()):
            said = [name for name in self.names if name in names]
        elif isinstance(self.owner, types.ModuleType):
            said = [name for name in self.names if name in names or not name.startswith("__")]
        elif isinstance(self.owner, (torch.Tensor, *BINDING)) and not computed:
            said = [name for name in self.names if name in names]
        elif computed or of_library(type(self.owner)) or not names.isdisjoint(ALL_NAMES):
            said = list(self.names)
        else:
            said = [name for name in self.names if name in names]
        return [name for name in said if name not in self.seen]

    def _is_own(self) -> bool:
        """Whether a class or a Python module is the user's own."""
        if isinstance(self.owner, type):
            return not self.library and not is_installed_class(self.owner)
        return not self.library and isinstance(self.owner, types.ModuleType) and not is_installed_module(self.owner)

    def hold(self, record: Record, values: dict[str, object]) -> None:
        """Have a trial leave these names as they are, if it is a class or a Python module that code can change."""
        if not self.library and isinstance(self.owner, type | types.ModuleType):
            item = self.owner if isinstance(self.owner, type) else self.names
            record.hold("", item, values, named=True)

    def watch_others(self, record: Record, names: set[str], computed: bool) -> None:
        """Have it noticed when a name comes into a class or a module that code could mean which says `names`. What a
        trial puts there of these is taken away again, if it is the user's own."""
        if not isinstance(self.owner, type | types.ModuleType):
            return
        if self.library:
            record.watch.add_size(self.names)
            return
        absent, own = frozenset(names.difference(self.names)), self._is_own()
        if isinstance(self.owner, types.ModuleType):
            record.watch.add_absent(self.names, absent)
        if isinstance(self.owner, type) or (computed and own):
            record.watch.add_keys(self.names)
        if own:
            self.hold(record, dict.fromkeys(absent, ABSENT))


def is_put_there(value: object) -> bool:
    """Whether what a namespace of a library holds is the user's own, which is followed like all that is."""
    if isinstance(value, types.FunctionType):
        return not in_library(value.__globals__.get("__name__")) and not is_installed(value)
    kind = value if isinstance(value, type) else type(value)
    return not in_library(root_of(kind)) and not is_installed_class(kind)
