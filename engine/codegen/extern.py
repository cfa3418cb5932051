"""Kernels that no text is generated for: one call of an ATen op, which runs as it is.

Such a kernel has one schedule, the empty one, so that it is measured, summed up and put together like any other.
"""

from __future__ import annotations

from engine.codegen.family import Rule, Unsupported
from engine.codegen.source import KernelSource
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.vocabulary import Fork, Schedule, Target

_NONE_CALLED = "An extern kernel calls an ATen op, and this body calls none."


class Extern:
    """It has no knobs, and whoever asks for its text is told which op it calls."""

    name = "extern"
    knobs: tuple[str, ...] = ()

    def declined_because(self, body: Graph) -> str | None:
        return None if _called(body) else _NONE_CALLED

    def forks(self, kernel: Kernel, target: Target) -> tuple[Fork, ...]:
        return ()

    def rules(self, kernel: Kernel, target: Target) -> tuple[Rule, ...]:
        return ()

    def render(self, kernel: Kernel, schedule: Schedule, target: Target) -> KernelSource:
        called = ", ".join(_called(kernel.body))
        raise Unsupported(f"No kernel is generated for {called}; it runs as the ATen op that it is.")


def _called(body: Graph) -> list[str]:
    return [str(op.attribute("op")) for op in body.ops if op.kind == "extern"]
