"""Attention kernels: scores, mask, softmax and weighted values of a block of queries, in one pass over the keys."""

from __future__ import annotations

from engine.codegen.attention_facts import attention_facts
from engine.codegen.attention_overlap import KNOB as OVERLAP
from engine.codegen.attention_overlap import offered_overlaps, overlaps
from engine.codegen.attention_overlap_text import overlap_source
from engine.codegen.attention_rules import attention_rules, offered_values
from engine.codegen.attention_text import attention_source
from engine.codegen.expressions import Unrenderable
from engine.codegen.family import Rule, Unsupported, fork_over
from engine.codegen.frames import FrameError
from engine.codegen.source import KernelSource
from engine.ir.attention import ATTENTION
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.vocabulary import Fork, KnobValue, Schedule, Target

_SMALLEST: dict[str, KnobValue] = {
    "BLOCK_M": 16,
    "BLOCK_N": 16,
    "PRECISION": "ieee",
    "LOADS": "pointer",
    "MASK": "every",
    "NUM_WARPS": 1,
    "NUM_STAGES": 1,
    "QUERY_TILES": 1,
    OVERLAP: "none",
}


class Attention:
    """One program holds BLOCK_M queries of one head and walks the keys that they see in steps of BLOCK_N."""

    name = ATTENTION
    knobs: tuple[str, ...] = tuple(_SMALLEST)

    def declined_because(self, body: Graph) -> str | None:
        try:
            attention_source(attention_facts(body), _SMALLEST)
        except (Unsupported, FrameError, Unrenderable) as reason:
            return str(reason)
        return None

    def forks(self, kernel: Kernel, target: Target) -> tuple[Fork, ...]:
        facts = attention_facts(kernel.body)
        offered = offered_values(facts) | {OVERLAP: offered_overlaps(facts, target)}
        optional = [(name, offered[name]) for name in ("MASK", "QUERY_TILES", OVERLAP) if len(offered[name]) > 1]
        return (
            fork_over(("BLOCK_M", offered["BLOCK_M"])),
            fork_over(("BLOCK_N", offered["BLOCK_N"])),
            fork_over(("PRECISION", offered["PRECISION"])),
            fork_over(("LOADS", offered["LOADS"])),
            fork_over(("NUM_WARPS", (1, 2, 4, 8)), ("NUM_STAGES", (1, 2, 3, 4))),
            *(fork_over(knob) for knob in optional),
        )

    def rules(self, kernel: Kernel, target: Target) -> tuple[Rule, ...]:
        return attention_rules(attention_facts(kernel.body), target)

    def render(self, kernel: Kernel, schedule: Schedule, target: Target) -> KernelSource:
        facts, values = attention_facts(kernel.body), schedule.as_dict()
        return overlap_source(facts, values, target) if overlaps(values) else attention_source(facts, values)
