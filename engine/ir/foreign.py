"""A kernel of another tool: who it is, since what it computes is not written anywhere we can read.

It stands for itself by its name, its problem and the names of its tuning parameters. Its body is the one graph that
does nothing, so every rule for graphs, plans and their JSON form holds for it as it stands, and no family renders it.
The GPU takes no part: what was measured on two GPUs is one kernel in two contexts.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from engine.ir.graph import Graph, Op, TensorSpec

FOREIGN = "foreign"
"""The family of kernels that have no body here."""

NOTHING = TensorSpec.contiguous((0,), "uint8")
NO_BODY = Graph((Op("input", (), NOTHING),), (0,), (0,))
"""An input without elements, given back."""

MAX_NAME = 200
MAX_PARAMETERS = 1000


@dataclass(frozen=True, slots=True)
class Identity:
    """`name` is the kernel's own, `problem` its size in words, `parameters` are sorted names."""

    name: str
    problem: str
    parameters: tuple[str, ...]

    @classmethod
    def of(cls, name: str, problem: str, parameters: tuple[str, ...]) -> Identity:
        """Texts made printable and short, parameters sorted."""
        return cls(_tidy(name), _tidy(problem), tuple(sorted(set(parameters))))

    @property
    def legal(self) -> bool:
        """Whether names are printable, short, sorted and there is at least the kernel's own."""
        texts = (self.name, self.problem, *self.parameters)
        return (
            bool(self.name)
            and len(self.parameters) <= MAX_PARAMETERS
            and all(isinstance(text, str) and len(text) <= MAX_NAME and text.isprintable() for text in texts)
            and list(self.parameters) == sorted(set(self.parameters))
        )


def foreign_key(identity: Identity, digits: int) -> str:
    """Hex digits of the sha256 of the identity, the same in any process."""
    text = json.dumps([FOREIGN, identity.name, identity.problem, identity.parameters], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def _tidy(text: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())[:MAX_NAME].strip()
