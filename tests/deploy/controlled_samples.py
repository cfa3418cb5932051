"""A matmul that was tuned on one machine twice: with Triton's own ptxas, and with one that takes controls."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.codegen import acf_of
from engine.events import Compared
from engine.ir import Kernel
from engine.ir.plan import Program
from engine.measure import Assembler, read_assembler
from engine.store import AcceptanceRow, RunInfo, Store
from engine.vocabulary import Context, Regime, Schedule, Target
from tests.deploy.samples import HERE, matmul, result, schedules
from tests.measure.fake_ptxas import fake_ptxas

SLOWER = b"slower"
SHA = hashlib.sha256(SLOWER).hexdigest()
FAST, SECOND, THIRD = schedules(matmul(), 3)
CONTROLLED = Schedule.of({**FAST.as_dict(), "ACF": SHA})
PLAIN = Schedule.of({**SECOND.as_dict(), "ACF": ""})


@dataclass(frozen=True, slots=True)
class Tools:
    """The ptxas of the second tuning, and its context."""

    assembler: Assembler
    context: Context

    @property
    def path(self) -> Path:
        return Path(self.assembler.path)


def tools(folder: Path) -> Tools:
    assembler = read_assembler(fake_ptxas(folder))
    return Tools(assembler, replace(HERE, ptxas=assembler.identity))


def tuned(store: Store, context: Context, times: Sequence[tuple[Schedule, float]], chosen: Schedule | None) -> None:
    """A finished run of the matmul in a context, with deploy times; `chosen` won when they were timed in turns."""
    kernel = matmul()
    store.record_context(context, Target())
    store.record_kernel(kernel)
    program = Program(kernel.body, "torch.matmul(x, w)", "cuda")
    run = store.start_run(
        RunInfo(program.target, program, "cuda:0", context.gpu, context.key, 0, 50, "cold-1", "emmy tune --code x")
    )
    for schedule, us in times:
        for regime in (Regime.RANKING, Regime.DEPLOY):
            store.record_measurement(result(kernel, schedule, us, context, regime), run=run)
    if chosen is not None:
        store.record_events(run, [_compared(kernel, times, chosen)])
    store.end_run(run, "finished")


def tuned_with_controls(store: Store, found: Tools, *, confirmed: bool = True, us: float = 8.0) -> None:
    """The schedule with controls is the fastest; the file is kept, and this ptxas accepted it."""
    said = AcceptanceRow(SHA, found.assembler.sha256, found.assembler.version, 90, True)
    store.record_controls([("one", SLOWER)], [said])
    times = [(PLAIN, 9.0), (CONTROLLED, us)]
    tuned(store, found.context, times, CONTROLLED if confirmed else PLAIN)


def _compared(kernel: Kernel, times: Sequence[tuple[Schedule, float]], chosen: Schedule) -> Compared:
    ordered = sorted(times, key=lambda pair: bool(acf_of(pair[0])))
    others = len(ordered) - 1
    return Compared(
        at=1.0,
        kernel=kernel.key,
        schedules=tuple(schedule.key for schedule, _ in ordered),
        chosen=chosen.key,
        processes=2,
        noise_share=0.01,
        ratios=(0.9,) * others,
        lows=(0.88,) * others,
        highs=(0.92,) * others,
        p_values=(1e-9,) * others,
        effects=(3.0,) * others,
        verdicts=("faster",) * others,
        tried=1,
    )
