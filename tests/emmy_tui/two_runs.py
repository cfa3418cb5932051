"""A database with two runs of the same kernels: one kernel faster in A, one within noise, one equal, one in B alone."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from engine.codegen import offered_schedules
from engine.events import Event, Measured, RunState
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.plan import Program
from engine.store import RunInfo, Store
from engine.vocabulary import Regime, Schedule, Target
from tests.emmy_tui.measured import CONTEXT, matmul, relu
from tests.emmy_tui.scripted import START


def pointwise(op: str) -> Kernel:
    build = GraphBuilder()
    value = build.input(TensorSpec.contiguous((512, 512), "float32"), "x")
    return Kernel("pointwise", build.build(build.add(op, value)), op)


def kernels() -> tuple[Kernel, ...]:
    return matmul(), relu(), pointwise("exp"), pointwise("neg")


OLD = (
    ((13.60, Regime.DEPLOY), (13.70, Regime.RANKING)),
    ((3.08, Regime.RANKING),),
    ((5.0, Regime.RANKING),),
    ((2.0, Regime.RANKING),),
)
NEW = (((12.41, Regime.DEPLOY), (12.50, Regime.RANKING)), ((3.07, Regime.RANKING),), ((5.0, Regime.RANKING),), ())
"""Times in us of each kernel, with the regime."""


def record_runs(path: Path) -> Path:
    """Write both runs, the older one first. Every time has an interval of 1 % to either side."""
    with Store.open(path, clock=lambda: START) as store:
        store.record_context(CONTEXT, Target())
        for kernel in kernels():
            store.record_kernel(kernel)
        for number, times in enumerate((OLD, NEW)):
            program = Program(matmul().body, "torch.matmul(x, y)", "cuda")
            info = RunInfo("torch.matmul(x, y)", program, "cuda:0", CONTEXT.gpu, CONTEXT.key, number, 50, "cold-1")
            run = store.start_run(info)
            told = zip(kernels(), times, strict=True)
            store.record_events(
                run,
                [event for kernel, own in told for us, regime in own for event in measured(kernel, us, regime, number)],
            )
            store.end_run(run, RunState.FINISHED)
    return path


def measured(kernel: Kernel, us: float, regime: Regime, number: int) -> list[Event]:
    """One ok candidate, and in the ranking regime a slower and a failed one beside it."""
    own = schedule(kernel, number)
    best = _event(kernel, own, regime, us)
    if regime is Regime.DEPLOY:
        return [best]
    return [
        best,
        _event(kernel, schedule(kernel, 5), regime, us * 3),
        _event(kernel, schedule(kernel, 7), regime, None),
    ]


def schedule(kernel: Kernel, number: int) -> Schedule:
    return next(islice(offered_schedules(kernel, Target()), number, None))


def _event(kernel: Kernel, own: Schedule, regime: Regime, us: float | None) -> Measured:
    return Measured(
        at=START,
        kernel=kernel.key,
        node=f"{kernel.key}{own.key}",
        schedule=str(own),
        regime=regime,
        status="failed" if us is None else "ok",
        trial=1,
        us=us,
        low_us=None if us is None else us * 0.99,
        high_us=None if us is None else us * 1.01,
    )
