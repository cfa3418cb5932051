"""Namespaces that code reaches: which names of them it could mean."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from engine.deploy.kinds import is_installed_class, is_special, of_library

ALL_NAMES = frozenset({"__dict__", "vars", "getattr", "attrgetter", "__getattribute__", "asdict", "copy", "deepcopy"})
"""Names by which code gets at attributes without saying theirs."""
ALL_NAMES_OF_OWN = frozenset({"format", "format_map", "astuple"})
"""The same, where it isn't the code of an installed package, which says them for messages."""
OF_CLASSES = frozenset({"__class__", "type"})
"""Names by which code gets at the class of an object, and could call it."""


@dataclass(slots=True)
class Space:
    """A namespace of which the names count that code says; `owner` is the class, module, tensor or object."""

    owner: object
    names: Mapping[str, object]
    seen: set[str]

    def meant(self, names: set[str], called: set[int] | None, texts: bool) -> list[str]:
        """Names in it that code could mean which says `names`, and weren't seen yet.

        `called` are identities of classes that the code gets hold of, and so may call, None: all; `texts`: it makes
        texts of objects.
        """
        if isinstance(self.owner, type):
            own = not is_installed_class(self.owner)
            makes, texts = own and (called is None or id(self.owner) in called), own and texts
            said = [n for n, value in self.names.items() if n in names or is_special(n, value, makes, texts)]
        elif isinstance(self.owner, types.ModuleType | torch.Tensor):
            said = [name for name in self.names if name in names]
        elif of_library(type(self.owner)) or not names.isdisjoint(ALL_NAMES):
            said = list(self.names)
        else:
            said = [name for name in self.names if name in names]
        return [name for name in said if name not in self.seen]
