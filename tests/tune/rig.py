"""A whole run in a test: a real database, the real spaces and search, and a fake GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine.events import Event, RunFinished
from engine.ir import Graph, GraphBuilder, TensorSpec
from engine.ir.plan import Program
from engine.prior import ColdModel
from engine.store import RunInfo, Store
from engine.tune.control import Control
from engine.tune.devices import Fleet
from engine.tune.problem import CapturedProblem, Problem
from engine.tune.recorder import StoreRecorder
from engine.tune.run import tune
from engine.tune.settings import Settings
from engine.tune.workbench import Workbench

from .fake_device import FakeDevice


def matmul_program(size: int = 256) -> Program:
    builder = GraphBuilder()
    left = builder.input(TensorSpec.contiguous((size, size), "bfloat16"))
    right = builder.input(TensorSpec.contiguous((size, size), "bfloat16"))
    return Program(builder.build(builder.add("matmul", left, right)), "matmul")


def linear_gelu_program(size: int = 256) -> Program:
    builder = GraphBuilder()
    left = builder.input(TensorSpec.contiguous((size, size), "bfloat16"))
    right = builder.input(TensorSpec.contiguous((size, size), "bfloat16"))
    bias = builder.input(TensorSpec.contiguous((size,), "bfloat16"))
    summed = builder.add("add", builder.add("matmul", left, right), bias)
    return Program(builder.build(builder.add("gelu", summed)), "linear+gelu")


def program_of(graph: Graph) -> Program:
    return Program(graph, "graph")


def tune_with(
    database: Path,
    device: FakeDevice | Fleet,
    program: Program,
    settings: Settings | None = None,
    control: Control | None = None,
    events: list[Event] | None = None,
    wrap: Callable[[Problem, Store], Problem] = lambda problem, store: problem,
    kernels_per_device: int = 1,
) -> RunFinished:
    """One run against `database`; the events go to `events`, and `wrap` changes what is walked."""
    settings = settings or Settings(patience=20)
    seen: list[Event] = events if events is not None else []
    with Store.open(database) as store:
        store.record_context(device.context, device.target)
        info = RunInfo(
            program.target, program, "fake:0", device.context.gpu, device.context.key, 0, settings.patience, "cold-1"
        )
        bench = Workbench(
            run=store.start_run(info),
            database=str(database),
            device=device,
            recorder=StoreRecorder(store, device.context.key),
            prior=ColdModel(),
            settings=settings,
            control=control or Control(),
            emit=seen.append,
            devices=len(device) if isinstance(device, Fleet) else 1,
            kernels_per_device=kernels_per_device,
        )
        if isinstance(device, Fleet):
            device.tell = partial(bench.log, level="warning")
        finished = tune(bench, wrap(CapturedProblem(program, device.target), store))
        store.end_run(bench.run, "finished")
        return finished
