"""Contraction kernels: one matmul, or a few of one left operand, with pointwise prologues and an epilogue each.

An epilogue computes what each element, or each group of neighbouring columns, needs of the product.
"""

from __future__ import annotations

from engine.codegen.contraction_facts import contraction_facts
from engine.codegen.contraction_rules import contraction_rules, offered_values
from engine.codegen.contraction_stores import KNOB as STORES
from engine.codegen.contraction_stores import offered_stores
from engine.codegen.contraction_text import contraction_source
from engine.codegen.expressions import Unrenderable
from engine.codegen.family import Rule, Unsupported, fork_over
from engine.codegen.frames import FrameError
from engine.codegen.source import KernelSource
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.vocabulary import Fork, KnobValue, Schedule, Target

_SMALLEST: dict[str, KnobValue] = {
    "BLOCK_M": 16,
    "BLOCK_N": 16,
    "BLOCK_K": 16,
    "PRECISION": "ieee",
    "LOADS": "pointer",
    "GROUP_M": 1,
    "PERSISTENT": False,
    "NUM_WARPS": 1,
    "NUM_STAGES": 1,
    "STORES": "pointer",
}


class Contraction:
    """One program computes a BLOCK_M x BLOCK_N tile of the output in steps of BLOCK_K."""

    name = "contraction"
    knobs: tuple[str, ...] = tuple(_SMALLEST)

    def declined_because(self, body: Graph) -> str | None:
        try:
            facts = contraction_facts(body)
            whole = max(int(_SMALLEST["BLOCK_N"]), *(part.group for part in facts.parts))
            contraction_source(facts, _SMALLEST | {"BLOCK_N": whole}, Target())
        except (Unsupported, FrameError, Unrenderable) as reason:
            return str(reason)
        return None

    def forks(self, kernel: Kernel, target: Target) -> tuple[Fork, ...]:
        facts = contraction_facts(kernel.body)
        offered = offered_values(facts)
        stores = offered_stores(facts, target)
        return (
            fork_over(("BLOCK_M", offered["BLOCK_M"])),
            fork_over(("BLOCK_N", offered["BLOCK_N"])),
            fork_over(("BLOCK_K", offered["BLOCK_K"])),
            fork_over(("PRECISION", offered["PRECISION"])),
            fork_over(("LOADS", offered["LOADS"])),
            fork_over(("GROUP_M", (1, 8)), ("PERSISTENT", (False, True))),
            fork_over(("NUM_WARPS", (1, 2, 4, 8)), ("NUM_STAGES", (1, 2, 3, 4, 5))),
            *([fork_over((STORES, stores))] if len(stores) > 1 else []),
        )

    def rules(self, kernel: Kernel, target: Target) -> tuple[Rule, ...]:
        return contraction_rules(contraction_facts(kernel.body), target)

    def render(self, kernel: Kernel, schedule: Schedule, target: Target) -> KernelSource:
        return contraction_source(contraction_facts(kernel.body), schedule.as_dict(), target)
