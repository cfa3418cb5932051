"""A compile, a launch or a capture that hangs: Ctrl-C ends the run all the same, and a skip ends its kernel alone."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from functools import partial
from pathlib import Path

import pytest

from engine.events import Assembled, Event, KernelFinished, KernelStarted, Measured, RunFinished, RunState
from engine.ir import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure import AssembledResult, DeviceError
from engine.session import SeparateSession, TuningSession
from engine.tune import LiveRequest, Settings, tune_live
from engine.tune.control import Control
from engine.tune.devices import Fleet
from engine.vocabulary import Failure, FailureKind, Measurement, Regime, Schedule
from tests.measure.rig import a_kernel, settled, until

from .fake_device import FakeDevice
from .hanging import a_session
from .rig import matmul_program, tune_with

ROOT = Path(__file__).parents[2]
ONE = "torch.matmul(torch.randn(512, 512), torch.randn(512, 512))"
TWO = "torch.matmul(torch.matmul(torch.randn(64, 512), torch.randn(512, 512)), torch.randn(512, 256)).sum(-1)"
ENDLESS = "__import__('pathlib').Path({note!r}).touch(); __import__('time').sleep(1000); torch.relu(torch.randn(4))"
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}
LIMIT_S = 30.0
"""Half of what a candidate that hangs has by its own limit."""


def hanging_run(how: str, code: str, folder: Path) -> subprocess.Popen[str]:
    """`emmy tune`, at the moment at which it hangs."""
    command = (sys.executable, "-m", "tests.tune.hanging", how, str(folder / "t.db"), str(folder / "note"), code)
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until((folder / "note").exists, 60.0)
    return run


def ended(run: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    """The exit status and all that was printed, after one signal."""
    since = time.monotonic()
    os.kill(run.pid, number)
    try:
        said, _ = run.communicate(timeout=LIMIT_S)
    finally:
        run.kill()
    print(f"{number.name}: ended after {time.monotonic() - since:.2f} s")
    return run.returncode, said


@pytest.mark.timeout(120)
@pytest.mark.parametrize("how", ["compile", "launch"])
def test_ctrl_c_lets_go_of_what_hangs(how: str, tmp_path: Path) -> None:
    status, said = ended(hanging_run(how, ONE, tmp_path), signal.SIGINT)
    assert status == 130
    assert "it is let go, and is no failure" in said
    with sqlite3.connect(tmp_path / "t.db") as connection:
        assert not connection.execute("SELECT * FROM measurement WHERE status = 'failed'").fetchall()
        assert connection.execute("SELECT state FROM run").fetchall() == [("stopped",)]
    assert settled(Path((tmp_path / "note").read_text()))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_capture_that_hangs_ends_with_the_run(number: signal.Signals, tmp_path: Path) -> None:
    note = str(tmp_path / "note")
    status, said = ended(hanging_run("fine", ENDLESS.format(note=note), tmp_path), number)
    assert status == STATUS[number]
    assert "Traceback" not in said
    assert not (tmp_path / "t.db").exists()
    assert settled(tmp_path)


def until_seen(session: TuningSession | SeparateSession, events: list[Event], kind: type[Event], count: int) -> None:
    """Drain the session until it told so many events of a kind."""

    def seen() -> bool:
        events.extend(session.drain())
        return sum(isinstance(event, kind) for event in events) >= count

    until(seen, LIMIT_S)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("how", ["compile", "launch"])
def test_a_skip_lets_go_of_what_hangs_and_the_next_kernel_is_tuned(how: str, tmp_path: Path) -> None:
    events: list[Event] = []
    note = tmp_path / "note"
    with a_session(how, note, TWO, tmp_path / "t.db") as session:
        session.start()
        until(note.exists, 60.0)
        while not session.wait(0.05):
            for kernel in hanging_kernels(session, events):
                session.skip(kernel)
        events.extend(session.drain())
        assert session.state is RunState.FINISHED, session.failure
        ends = [event for event in events if isinstance(event, KernelFinished)]
        skipped = [event for event in ends if event.reason == "skipped on request"]
        assert skipped
        assert len(ends) > len(skipped)
        failures = [event for event in events if isinstance(event, Measured) and event.failure]
        assert not failures
        assert any(isinstance(event, RunFinished) for event in events)


def hanging_kernels(session: TuningSession, events: list[Event]) -> set[str]:
    """Of the kernels that are on, those whose candidates hang."""
    events.extend(session.drain())
    started = {event.kernel for event in events if isinstance(event, KernelStarted)}
    over = {event.kernel for event in events if isinstance(event, KernelFinished)}
    device = session._device
    assert device is not None
    health = device.health()
    at = [one for one in (*health.compiles, *health.workers) if one.age_s > 0.3]
    return {one.candidate.kernel for one in at} & (started - over)


@pytest.mark.timeout(120)
def test_a_stop_from_a_screen_lets_go_of_what_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # its process is to find the tests
    note = tmp_path / "note"
    with SeparateSession(a_session("launch", note, ONE, tmp_path / "t.db")) as session:
        session.start()
        until(note.exists, 60.0)
        session.stop()
        assert session.wait(LIMIT_S)
        assert session.state is RunState.STOPPED
        assert settled(Path(note.read_text()))


class Hung(FakeDevice):
    """Answers all but the candidates that `hangs` picks; the run is asked to skip their kernel once `after` follow."""

    def __init__(self, control: Control, hangs: Callable[[int, Regime], bool], after: int) -> None:
        super().__init__()
        self._control, self._hangs, self._after = control, hangs, after
        self.hung: list[Future[Measurement]] = []

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        answer = super().submit(kernel, schedule, regime)
        if self._hangs(len(self.launches), regime):
            answer = Future()
            self.hung.append(answer)
        self._after -= bool(self.hung)
        if self._after == 0:
            self._control.skip(kernel.key)
        return answer


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("hangs", "after"),
    [
        (lambda number, regime: number == 1, 3),
        (lambda number, regime: regime is Regime.DEPLOY, 1),
    ],
    ids=["the first", "each second measurement"],
)
def test_a_skipped_kernel_has_the_best_of_what_was_measured(
    hangs: Callable[[int, Regime], bool], after: int, tmp_path: Path
) -> None:
    control = Control()
    events: list[Event] = []
    device = Hung(control, hangs, after)
    tune_with(tmp_path / "t.db", device, matmul_program(), control=control, events=events)
    (end,) = (event for event in events if isinstance(event, KernelFinished))
    assert end.reason == "skipped on request"
    timed = [event.us for event in events if isinstance(event, Measured) and event.us is not None]
    assert end.best_us is not None
    assert end.best_us <= min(timed)
    assert all(answer.cancelled() for answer in device.hung)


def test_a_fleet_lets_go_and_loses_no_device() -> None:
    control = Control()
    devices = [Hung(control, lambda number, regime: number == 1, 100) for _ in range(2)]
    fleet = Fleet(devices)
    kernel, schedule = a_kernel(), Schedule.of({})
    with fleet.lease() as lease:
        answer = lease.submit(kernel, schedule, Regime.RANKING)
        assert answer.cancel()
        assert devices[0].hung[0].cancelled()
        assert not fleet.lost
        assert lease.submit(kernel, schedule, Regime.RANKING).result(LIMIT_S).us is not None


class SlowToAssemble(FakeDevice):
    """Its graph takes until the device is closed, and is cancelled then, or fails of it."""

    def __init__(self, ending: str) -> None:
        super().__init__()
        self._ending = ending
        self.assembling, self._closing = threading.Event(), threading.Event()

    def assemble(
        self,
        grouping: Grouping,
        schedules: Mapping[str, Schedule],
        program: Graph | None = None,
        *,
        pdl: bool = False,
    ) -> AssembledResult:
        self.assembling.set()
        self._closing.wait(LIMIT_S)
        if self._ending == "cancelled":
            raise CancelledError
        if self._ending == "gone":
            raise DeviceError("the device is closed")
        return AssembledResult(None, failure=Failure(FailureKind.CRASH, "the compiler died of SIGKILL"))

    def close(self) -> None:
        self._closing.set()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("ending", ["cancelled", "gone", "failed"])
def test_a_stop_while_the_graph_is_assembled_sums_up_and_records_no_failure(ending: str, tmp_path: Path) -> None:
    device = SlowToAssemble(ending)
    request = LiveRequest(ONE, tmp_path / "t.db", "fake:0", open_device=lambda name, jobs: device)
    with TuningSession(partial(tune_live, request), Settings(patience=5)) as session:
        session.start()
        assert device.assembling.wait(LIMIT_S)
        session.stop()
        assert session.wait(LIMIT_S)
        assert session.state is RunState.STOPPED
        assert session.summary is not None
        assert session.summary.best_us is not None
        assert not [event for event in session.drain() if isinstance(event, Assembled)]
    with sqlite3.connect(tmp_path / "t.db") as connection:
        assert connection.execute("SELECT state FROM run").fetchall() == [("stopped",)]
