"""Kernels that no text is generated for: one call of an ATen op, which runs as it is."""

from __future__ import annotations

from engine.codegen.family import Rule, Unsupported
from engine.codegen.source import KernelSource
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.vocabulary import Fork, Schedule, Target


class Extern:
    """It has no knobs, and whoever asks for its text is told which op it calls."""

    name = "extern"
    knobs: tuple[str, ...] = ()

    def declined_because(self, body: Graph) -> str | None:
        called = [str(op.attribute("op")) for op in body.ops if op.kind == "extern"]
        if not called:
            return "An extern kernel calls an ATen op, and this body calls none."
        return f"No kernel is generated for {', '.join(called)}; it runs as the ATen op that it is."

    def forks(self, kernel: Kernel, target: Target) -> tuple[Fork, ...]:
        return ()

    def rules(self, kernel: Kernel, target: Target) -> tuple[Rule, ...]:
        return ()

    def render(self, kernel: Kernel, schedule: Schedule, target: Target) -> KernelSource:
        raise Unsupported(self.declined_because(kernel.body))
