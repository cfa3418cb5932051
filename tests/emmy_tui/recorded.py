"""A real database of one scripted run, written as a tuning run writes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.events import Event, RunState
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.plan import Program
from engine.store import RunInfo, Store
from engine.vocabulary import Context

CONTEXT = Context("NVIDIA H200", "9.0", "580.1", "2.13.0", "3.6.0", "12.8")


def program() -> Program:
    build = GraphBuilder()
    value = build.input(TensorSpec.contiguous((64, 64), "float32"), "x")
    return Program(build.build(build.add("relu", value)), "relu(x)", "cuda")


def record(path: Path, events: Sequence[Event], *, target: str = "relu(x)", ended: bool = True) -> None:
    """Add a run of these events to the database."""
    with Store.open(path) as store:
        store.record_context(CONTEXT)
        store.record_kernel(Kernel("pointwise", program().graph, "relu"))
        info = RunInfo(target, program(), "cuda:0", CONTEXT.gpu, CONTEXT.key, 1, 50, "cold-1")
        run = store.start_run(info)
        store.record_events(run, events)
        if ended:
            store.end_run(run, RunState.FINISHED)
