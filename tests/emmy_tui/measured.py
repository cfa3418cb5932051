"""A real database for the tabs that read rows: two kernels, failures, deploy times, two contexts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from emmy_tui.app import EmmyApp
from emmy_tui.look import Look
from engine.codegen import offered_schedules
from engine.events import Event, KernelFound, RunStarted, RunState, StateChanged
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.plan import Program
from engine.store import RunInfo, Store, Suggestion
from engine.vocabulary import (
    BuildReport,
    Context,
    Failure,
    FailureKind,
    Measurement,
    Regime,
    Schedule,
    Status,
    Target,
    Timing,
)
from tests.emmy_tui.looking import application
from tests.emmy_tui.scripted import START, ScriptedSource

CONTEXT = Context("NVIDIA H200", "9.0", "580.1", "2.13.0", "3.6.0", "12.8")
OTHER = replace(CONTEXT, gpu="NVIDIA A100", capability="8.0")
ROWS = 60
COMMAND = "emmy tune --code 'torch.matmul(x, y)' --db tune.db"


def matmul() -> Kernel:
    build = GraphBuilder()
    left = build.input(TensorSpec.contiguous((512, 512), "float32"), "x")
    right = build.input(TensorSpec.contiguous((512, 512), "float32"), "weight")
    return Kernel("contraction", build.build(build.add("matmul", left, right)), "matmul")


def relu() -> Kernel:
    build = GraphBuilder()
    value = build.input(TensorSpec.contiguous((512, 512), "float32"), "x")
    return Kernel("pointwise", build.build(build.add("relu", value)), "relu")


def schedules(kernel: Kernel, count: int = ROWS) -> list[Schedule]:
    """Every 37th offered schedule, so that knobs differ among them."""
    return list(islice(offered_schedules(kernel, Target()), 0, 37 * count, 37))


def fill(path: Path, rows: int = ROWS) -> Path:
    """Write the database: every seventh candidate fails, every fifth has a deploy time."""
    kernels = (matmul(), relu())
    program = Program(kernels[0].body, "torch.matmul(x, y)", "cuda")
    with Store.open(path, clock=lambda: START) as store:
        for context in (CONTEXT, OTHER):
            store.record_context(context, Target())
        for kernel in kernels:
            store.record_kernel(kernel)
        info = RunInfo("torch.matmul(x, y)", program, "cuda:0", CONTEXT.gpu, CONTEXT.key, 1, 50, "cold-1", COMMAND)
        run = store.start_run(info)
        store.record_measurement(_ok(kernels[0], schedules(kernels[0], 1)[0], 0, OTHER), run=run)
        for number, schedule in enumerate(schedules(kernels[0], rows)):
            failed = number % 7 == 6
            measured = _failed(kernels[0], schedule, number) if failed else _ok(kernels[0], schedule, number)
            store.record_measurement(measured, run=run, trial=number + 1)
            if number % 5 == 0 and not failed:
                deploy = replace(_ok(kernels[0], schedule, number, scale=0.99), regime=Regime.DEPLOY)
                store.record_measurement(deploy, run=run)
        store.record_measurement(_ok(kernels[1], schedules(kernels[1], 1)[0], 3), run=run, trial=1)
        store.end_run(run, RunState.FINISHED)
    return path


def suggest(path: Path) -> Schedule:
    """What another GPU had pinned of the matmul, and what it had measured of a kernel that isn't known here."""
    one, two = schedules(matmul())[3:5]
    reason = "pinned on an NVIDIA A100 with Triton 3.6.0"
    with Store.open(path) as store:
        store.suggest(
            [
                Suggestion(matmul().key, one, OTHER, reason, 8.5, "deploy", "ben", "[b]fast there[/]", START),
                Suggestion("unknown", two, OTHER, "measured on an NVIDIA A100"),
            ]
        )
    return one


def only_eight_warps_fail(path: Path) -> Path:
    """Make the database one in which every candidate with eight warps fails, and no other."""
    failure = Failure(FailureKind.ILLEGAL_ACCESS, "illegal address")
    with Store.open(path, clock=lambda: START) as store:
        conn = store._connection.db.conn
        conn.execute("DELETE FROM node")
        conn.execute("DELETE FROM measurement WHERE status = 'failed' OR json_extract(schedule, '$.NUM_WARPS') = 8")
        run = store.runs()[0].id
        for schedule in (one for one in schedules(matmul()) if one.as_dict()["NUM_WARPS"] == 8):
            failed = Measurement(matmul().key, schedule, Regime.RANKING, CONTEXT.key, Status.FAILED, failure=failure)
            store.record_measurement(failed, run=run)
    return path


def _ok(kernel: Kernel, schedule: Schedule, number: int, context: Context = CONTEXT, scale: float = 1.0) -> Measurement:
    us = (10.0 + (number * 7) % 60) * scale
    build = BuildReport(64 + number, number % 4 * 8, 1024 * (number % 64), 1.25)
    timing = Timing(us, us * 0.99, us * 1.01, (us, us))
    return Measurement(kernel.key, schedule, Regime.RANKING, context.key, Status.OK, timing, None, build, 1e-3, 0.25)


def _failed(kernel: Kernel, schedule: Schedule, number: int) -> Measurement:
    cause = f"out of resource: shared memory, Required: {262144 + number}, Hardware limit: 232448 [a/b] [-Wfoo=1]"
    failure = Failure(FailureKind.SHARED_MEMORY, cause)
    return Measurement(kernel.key, schedule, Regime.RANKING, CONTEXT.key, Status.FAILED, failure=failure)


def events() -> list[Event]:
    """A finished run of these kernels, as far as the tabs need one."""
    found: list[Event] = [
        RunStarted(
            at=START,
            run="r",
            target="torch.matmul(x, y)",
            device="cuda:0",
            gpu="NVIDIA H200",
            seed=1,
            patience=50,
            prior="cold-1",
            database="tune.db",
        ),
        StateChanged(at=START, state=RunState.RUNNING),
    ]
    for kernel in (matmul(), relu()):
        found.append(
            KernelFound(
                at=START,
                kernel=kernel.key,
                label=kernel.label,
                family=kernel.family,
                shape=kernel.shape_text,
                count=1,
                flops=kernel.flops,
                bytes_moved=kernel.bytes_moved,
            )
        )
    return [*found, StateChanged(at=START, state=RunState.FINISHED)]


def over(path: Path, look: Look | None = None, more: Sequence[Event] = (), **source: Any) -> EmmyApp:
    """An application whose rows come from this database; it exports and copies beside it."""
    look = look or Look()
    look = replace(look, export_folder=path.parent / "out", copy_file=path.parent / "copied.txt")
    return application(ScriptedSource([*events(), *more], locate=lambda: path, capabilities=(), **source), look)


async def settled(app: EmmyApp, pilot: Pilot[None]) -> None:
    """Wait until the desk has answered and the answer is painted."""
    for _ in range(400):
        await pilot.pause()
        if not app.desk.busy:
            break
        await asyncio.sleep(0.005)
    assert not app.desk.busy
    await pilot.pause()


async def press(app: EmmyApp, pilot: Pilot[None], *keys: str) -> None:
    """Press keys, and wait for what they asked of the database after each."""
    for key in keys:
        await pilot.press(key)
        await settled(app, pilot)


async def type_text(app: EmmyApp, pilot: Pilot[None], text: str) -> None:
    """Type into the focused line, and wait for the answers."""
    names = {" ": "space", "/": "slash", ":": "colon", "<": "less_than_sign", "=": "equals_sign", "*": "asterisk"}
    await pilot.press(*(names.get(character, character) for character in text))
    await settled(app, pilot)
