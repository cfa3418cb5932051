"""What a kernel family is: which bodies it can write, the forks it asks, the rules a schedule obeys, and the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Protocol

from engine.codegen.source import KernelSource
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.vocabulary import Fork, KnobValue, Option, Schedule, Target

Values = Mapping[str, KnobValue]


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on some knobs. `broken` gives a full sentence why the values break it, or None.

    A law says that the kernel can't be built or would be wrong, and binds pins too; other rules say that a schedule
    is not worth offering. A rule is asked as soon as all of its knobs are decided.
    """

    knobs: tuple[str, ...]
    broken: Callable[[Values], str | None]
    law: bool = True


class Family(Protocol):
    """A way to write kernels. Implementations hold no state."""

    name: str
    knobs: tuple[str, ...]
    """Names of the knobs of a full schedule, in canonical order."""

    def declined_because(self, body: Graph) -> str | None:
        """A sentence why this family can't write the body, or None when it can."""
        ...

    def forks(self, kernel: Kernel, target: Target) -> tuple[Fork, ...]:
        """The questions in the order they are asked, each with every option it could have before the rules."""
        ...

    def rules(self, kernel: Kernel, target: Target) -> tuple[Rule, ...]: ...

    def render(self, kernel: Kernel, schedule: Schedule, target: Target) -> KernelSource:
        """The source of a legal schedule."""
        ...


class Unsupported(ValueError):
    """A body that a family can't write; the text is a sentence."""


def fork_over(*knobs: tuple[str, tuple[KnobValue, ...]]) -> Fork:
    """A fork that decides several knobs at once: every combination, in canonical order."""
    names = tuple(name for name, _ in knobs)
    combos = product(*(values for _, values in knobs))
    return Fork(" ".join(names), tuple(Option(tuple(zip(names, combo, strict=True))) for combo in combos))
