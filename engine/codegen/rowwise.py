"""Rowwise kernels: pointwise ops and reductions over the same trailing axes (softmax, norms, sums, their mixtures)."""

from __future__ import annotations

from engine.codegen.expressions import Unrenderable
from engine.codegen.family import Rule, Unsupported, fork_over
from engine.codegen.frames import FrameError
from engine.codegen.rowwise_facts import rowwise_facts
from engine.codegen.rowwise_rules import TILE_ELEMENTS, power_of_two, rowwise_rules
from engine.codegen.rowwise_text import rowwise_source
from engine.codegen.source import KernelSource
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.knobs import KNOBS
from engine.vocabulary import Fork, KnobValue, Schedule, Target

_SMALLEST: dict[str, KnobValue] = {
    "NUM_WARPS": 1,
    "NUM_STAGES": 1,
    "ROWS": 1,
    "COLUMNS": 2,
    "PERSISTENT": False,
    "EVICTION": "",
}


class Rowwise:
    """One program handles ROWS rows: at once when COLUMNS reaches a row's end, else in a loop for each level.

    Programs that walk the rows can be built and pinned and are not offered: of 4559 distinct candidates of 24 kernels,
    in 43 recordings (H200, bf16 and fp32), the closest was 2.2 % behind the best, and in half of the recordings they
    all lost more than 38 %.
    """

    name = "rowwise"
    knobs: tuple[str, ...] = ("PERSISTENT", "ROWS", "COLUMNS", "EVICTION", "NUM_WARPS", "NUM_STAGES")

    def declined_because(self, body: Graph) -> str | None:
        try:
            rowwise_source(rowwise_facts(body), _SMALLEST, Target())
        except (Unsupported, FrameError, Unrenderable) as reason:
            return str(reason)
        return None

    def forks(self, kernel: Kernel, target: Target) -> tuple[Fork, ...]:
        facts = rowwise_facts(kernel.body)
        row = max(16, power_of_two(facts.columns))
        rows = power_of_two(facts.rows)
        columns: tuple[KnobValue, ...] = tuple(v for v in KNOBS["COLUMNS"].values if int(v) < row)
        if row <= TILE_ELEMENTS // 4:
            columns = (*columns, row)
        return (
            fork_over(("PERSISTENT", (False,))),
            fork_over(("ROWS", tuple(v for v in KNOBS["ROWS"].values if int(v) <= rows))),
            fork_over(("COLUMNS", columns)),
            fork_over(("EVICTION", KNOBS["EVICTION"].values)),
            fork_over(("NUM_WARPS", (1, 2, 4, 8, 16)), ("NUM_STAGES", (1, 2, 3, 4))),
        )

    def rules(self, kernel: Kernel, target: Target) -> tuple[Rule, ...]:
        return rowwise_rules(rowwise_facts(kernel.body), target)

    def render(self, kernel: Kernel, schedule: Schedule, target: Target) -> KernelSource:
        return rowwise_source(rowwise_facts(kernel.body), schedule.as_dict(), target)
