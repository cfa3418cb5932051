"""A run as a script of events, and a session that plays it: what the command line drives, without an engine."""

from __future__ import annotations

import fcntl
import io
import os
import struct
import termios
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from engine import vocabulary as words
from engine.events import (
    Assembled,
    Event,
    Health,
    KernelFinished,
    KernelFound,
    KernelStarted,
    Logged,
    Measured,
    RunFinished,
    RunStarted,
    RunState,
    StateChanged,
)
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.graph import Graph
from engine.ir.plan import BufferView, Grouping, KernelCall, Program
from engine.store import RunInfo, Store

KEY = "a" * 24
BEST = "BLOCK_K=32 BLOCK_M=64 BLOCK_N=64 NUM_STAGES=3 NUM_WARPS=4 PRECISION=ieee"


def measured(trial: int, us: float | None, *, regime: str = "ranking", best: bool = False, **more: object) -> Measured:
    """One decided candidate of the script's kernel; it failed where `us` is None."""
    fault = {} if us is not None else {"failure": "out of shared memory", "cause": "needs 300000 bytes"}
    values = {"status": "failed" if us is None else "ok", "schedule": BEST, **fault, **more}
    return Measured(at=3.0, kernel=KEY, node=f"n{trial}", regime=regime, trial=trial, us=us, best=best, **values)


def script() -> list[Event]:
    """A whole run of one kernel: two times, a failure, a cached row, a deploy row, and the assembled check."""
    return [
        RunStarted(
            at=1.0,
            run="r1",
            target="torch.matmul(a, b)",
            device="cuda:0",
            gpu="NVIDIA H200",
            seed=0,
            patience=10,
            prior="cold",
            database="x.db",
        ),
        StateChanged(at=1.0, state="running"),
        KernelFound(
            at=1.1,
            kernel=KEY,
            label="matmul",
            family="contraction",
            shape="512x512x512 float32",
            count=1,
            flops=2 * 512**3,
            bytes_moved=3 * 4 * 512**2,
        ),
        KernelStarted(at=2.0, kernel=KEY, patience=10),
        measured(1, 20.25, best=True),
        measured(2, None),
        measured(3, 13.5, best=True),
        measured(4, 15.0, cached=True),
        measured(0, 13.1, regime="deploy"),
        Logged(at=3.5, level="warning", text="another process is on the GPU"),
        KernelFinished(
            at=4.0, kernel=KEY, state="done", reason="patience: 10 candidates", best_us=13.1, best_schedule=BEST
        ),
        Assembled(at=5.0, grouping="g1", sum_us=13.1, assembled_us=13.362, error=1e-6),
        Health(at=5.0, search_share=0.01, gpu_idle_share=0.25, compiling=0, respawns=0),
        RunFinished(
            at=6.0,
            measured=4,
            cached=1,
            failed=1,
            best_us=13.1,
            sum_us=13.1,
            assembled_us=13.362,
            search_share=0.01,
            gpu_idle_share=0.25,
            wall_s=192.0,
        ),
        StateChanged(at=6.0, state="finished"),
    ]


class ScriptedSession:
    """Plays a list of events, one at each wait, and notes what is asked of it. An end stops or fails it."""

    def __init__(self, events: list[Event], *, failure: str | None = None) -> None:
        self._left = list(events)
        self._ready: list[Event] = []
        self._fails_with = failure
        self.failure: str | None = None
        self.asked: list[str] = []
        self.on_wait: Callable[[int], None] = lambda count: None
        self._waits = 0

    def __enter__(self) -> ScriptedSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.asked.append("close")

    def start(self) -> None:
        self.asked.append("start")

    def stop(self) -> None:
        self.asked.append("stop")
        self._left = self._left[-2:]

    def abort(self) -> None:
        self.asked.append("abort")
        self._left = []

    def drain(self, limit: int = 5000) -> list[Event]:
        taken, self._ready = self._ready[:limit], self._ready[limit:]
        return taken

    def wait(self, timeout: float | None = None) -> bool:
        self._waits += 1
        self.on_wait(self._waits)
        if self._left:
            self._ready.append(self._left.pop(0))
            return False
        self.failure = self._fails_with
        return True


class Terminal(io.StringIO):
    """A stream in memory that is backed by a real pseudo-terminal of the given width, so that its size can be asked."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self._leader, self._follower = os.openpty()

        fcntl.ioctl(self._follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._follower

    def close(self) -> None:
        os.close(self._leader)
        os.close(self._follower)
        super().close()


@pytest.fixture
def events() -> list[Event]:
    return script()


@pytest.fixture(name="measured")
def _measured() -> Callable[..., Measured]:
    """Makes one decided candidate of the script's kernel."""
    return measured


@pytest.fixture
def scripted() -> type[ScriptedSession]:
    return ScriptedSession


@pytest.fixture
def terminal() -> Iterator[Callable[[int], Terminal]]:
    opened: list[Terminal] = []

    def open_terminal(columns: int) -> Terminal:
        opened.append(Terminal(columns))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data and log folders of this test alone."""
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


@pytest.fixture
def short_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prior is fitted in a few rounds: for what a fit reads and says, and not how well it predicts."""
    monkeypatch.setattr("engine.prior.trees.ROUNDS", 5)


def _matmul() -> Graph:
    build = GraphBuilder()
    left, right = (build.input(TensorSpec.contiguous((512, 512), "float32"), name) for name in "xy")
    return build.build(build.add("matmul", left, right))


def _relu() -> Graph:
    build = GraphBuilder()
    return build.build(build.add("relu", build.input(TensorSpec.contiguous((64, 64), "float32"), "x")))


CONTEXT = words.Context("NVIDIA H200", "9.0", "580.1", "2.13.0", "3.6.0", "12.8")
MATMUL, RELU = Kernel("contraction", _matmul(), "matmul"), Kernel("pointwise", _relu(), "relu")


def _row(kernel: Kernel, us: float | None, knobs: dict[str, words.KnobValue]) -> words.Measurement:
    schedule = words.Schedule.of({"NUM_STAGES": 3, "PRECISION": "ieee", **knobs})
    timing = None if us is None else words.Timing(us, us - 0.5, us + 0.5, (us,))
    fault = words.Failure(words.FailureKind.SHARED_MEMORY, "Required: 262144, Hardware limit: 232448")
    return words.Measurement(
        kernel.key,
        schedule,
        words.Regime.RANKING,
        CONTEXT.key,
        words.Status.OK if timing else words.Status.FAILED,
        timing,
        None if timing else fault,
        words.BuildReport(96, 0, 49152, 1.5),
        1e-6 if timing else None,
        0.25,
    )


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run of a matmul, with times and a cluster of failures; beside it a relu that was timed once."""
    path = tmp_path_factory.mktemp("recorded") / "tune.db"
    rows = [_row(MATMUL, 10.0 + m / 8 + w, {"BLOCK_M": m, "NUM_WARPS": w}) for m in (16, 64) for w in (2, 4)]
    rows += [_row(MATMUL, None, {"BLOCK_M": 256, "NUM_WARPS": w}) for w in (2, 4, 8)]
    return _record(path, [*rows, _row(RELU, 3.25, {"BLOCK": 1024, "NUM_WARPS": 4})])


@pytest.fixture(scope="session")
def switched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `recorded`, with a knob that is a switch: both ways for the matmul, where only on fails; off for the relu."""
    path = tmp_path_factory.mktemp("switched") / "tune.db"
    knobs = [{"BLOCK_M": m, "NUM_WARPS": 4, "PERSISTENT": on} for m in (16, 64) for on in (False, True)]
    rows = [_row(MATMUL, 10.0 + position, choice) for position, choice in enumerate(knobs)]
    rows += [_row(MATMUL, None, {"BLOCK_M": m, "NUM_WARPS": 8, "PERSISTENT": True}) for m in (128, 256)]
    rows += [_row(MATMUL, 30.0 + m, {"BLOCK_M": m, "NUM_WARPS": 8, "PERSISTENT": False}) for m in (128, 256)]
    return _record(path, [*rows, _row(RELU, 3.25, {"BLOCK": 1024, "NUM_WARPS": 4, "PERSISTENT": False})])


def _record(path: Path, rows: Sequence[words.Measurement]) -> Path:
    """A finished run of the matmul program that measured `rows`."""
    program = Program(_matmul(), "torch.matmul(x, y)", "cuda")
    info = RunInfo("torch.matmul(x, y)", program, "cuda:0", "NVIDIA H200", CONTEXT.key, 0, 50, "cold", "emmy tune")
    with Store.open(path) as store:
        store.record_context(CONTEXT)
        for kernel in (MATMUL, RELU):
            store.record_kernel(kernel)
        run = store.start_run(info)
        for trial, row in enumerate(rows, start=1):
            store.record_measurement(row, run=run, trial=trial)
        matrix = TensorSpec.contiguous((512, 512), "float32")
        views = [BufferView(index, matrix) for index in range(3)]
        call = KernelCall(MATMUL, (views[0], views[1]), (2,))
        grouping = store.record_grouping(run, Grouping((matrix,) * 3, (call,), (views[2],)))
        store.score_grouping(grouping, 14.0)
        store.end_run(run, RunState.FINISHED)
    return path
