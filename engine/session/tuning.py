"""One tuning session: it owns the engine thread, and everything a screen or a command line asks of it is thread-safe.

The session's process never loads torch: capturing, compiling and timing happen in child processes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

from engine.capture import CaptureError
from engine.deploy import user_name
from engine.events import Acted, Event, Logged, QueueChanged, RunFinished, RunState, StateChanged
from engine.measure import CounterReader, Device, DeviceError
from engine.session.inbox import Inbox
from engine.session.total import total
from engine.store import StoreError
from engine.tune import (
    Control,
    ControlsRequest,
    Host,
    LiveRequest,
    ReplayRequest,
    Retune,
    RetuneRequest,
    Settings,
    Verb,
    tune_again,
    tune_live,
    tune_queue,
    tune_replay,
)

_LOG = logging.getLogger(__name__)
STOP_S = 1.5
"""How long a stop waits for the candidate in flight, in seconds: one takes less, unless it compiles or hangs."""


class TuningSession:
    """Start it once; then pause, resume, stop or abort from any thread, and drain its events.

    `failure` is one sentence for a person when the state is FAILED. Use it as a context manager, or call `close`.
    """

    def __init__(self, work: Callable[[Host], list[RunFinished]], settings: Settings, *, queues: bool = False) -> None:
        """`queues` says that the work looks at the control's queue before it ends."""
        self._work = work
        self._queues = queues
        self.settings = settings
        self.control = Control(user_name())
        self._inbox = Inbox()
        self._thread: threading.Thread | None = None
        self._done = threading.Event()
        self._device: Device | None = None
        self._state = RunState.IDLE
        self.failure: str | None = None
        self.summary: RunFinished | None = None

    @classmethod
    def tune(
        cls,
        code: str,
        *,
        database: Path,
        settings: Settings,
        device: str = "cuda:0",
        command: str = "",
        controls: ControlsRequest | None = None,
        counters: CounterReader | None = None,
    ) -> TuningSession:
        """Capture an expression, tune it on a GPU and record everything in `database`.

        `device` may name several GPUs, separated by commas: a kernel a GPU at a time, with the results of one.
        With `controls` the controls of ptxas are searched with the schedules, or after them. `counters` reads the
        metric of an objective that is one.
        """
        request = LiveRequest(code, database, device, command, controls=controls, counters=counters)
        return cls(partial(tune_live, request, then=tune_queue), settings, queues=True)

    @classmethod
    def retune(
        cls, database: Path, wanted: Sequence[Retune], *, settings: Settings, device: str = "cuda:0", command: str = ""
    ) -> TuningSession:
        """Tune kernels of a database again, or measure single candidates of them: their programs aren't loaded."""
        request = RetuneRequest(database, tuple(wanted), device, command)
        return cls(partial(tune_again, request), settings, queues=True)

    @classmethod
    def replay(
        cls,
        database: Path,
        *,
        settings: Settings,
        pace: float = 0.0,
        target: str | None = None,
        kernels: Sequence[str] = (),
    ) -> TuningSession:
        """Search again over a recorded database, with no GPU; `pace` is seconds a candidate.

        `target` picks the recorded programs whose text contains it; None takes all, one after the other. With
        `kernels`, structural keys, each of these alone is searched again instead.
        """
        request = ReplayRequest(database, pace, target, tuple(kernels))
        return cls(partial(tune_replay, request), settings)

    @property
    def state(self) -> RunState:
        return self._state

    @property
    def pid(self) -> None:
        """It runs in this process."""
        return None

    @property
    def dropped(self) -> int:
        return self._inbox.dropped

    @property
    def order(self) -> tuple[Callable[[Host], list[RunFinished]], Settings, bool]:
        """What this is made of: work, settings, and whether it queues. What `tune`, `retune` and `replay` make can be
        pickled, for a process that does it."""
        return self._work, self.settings, self._queues

    @property
    def verbs_of_a_run(self) -> frozenset[str]:
        """What can be asked once it has started."""
        verbs = {"stop", "skip", "patience", "resume" if self.control.paused else "pause"}
        return frozenset(verbs | {"retune"} if self._queues else verbs)

    @property
    def capabilities(self) -> frozenset[str]:
        """The verbs that do something in the present state."""
        if self._thread is None:
            return frozenset({"start"})
        if self._done.is_set() or self._state is RunState.STOPPING:
            return frozenset()
        return self.verbs_of_a_run

    def start(self) -> None:
        """Start the engine thread; later calls do nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="emmy-engine", daemon=True)
            self._thread.start()

    def pause(self) -> None:
        """Hold after the candidate in flight."""
        if not self._done.is_set() and self._thread is not None and not self.control.stopping:
            self.control.pause()
            self.change_state(RunState.PAUSED)

    def resume(self) -> None:
        if self.control.paused:
            self.control.resume()
            self.change_state(RunState.RUNNING)

    def stop(self) -> None:
        """Stop after the candidate in flight, which has `STOP_S` to end; what was measured stays."""
        if not self._done.is_set() and self._thread is not None and not self.control.stopping:
            self.control.stop()
            self.change_state(RunState.STOPPING)
            threading.Thread(target=self._end_in_time, name="emmy-stop", daemon=True).start()

    def _end_in_time(self) -> None:
        """Abort what doesn't stop in time, so that nothing that hangs outlasts a stop."""
        if not self._done.wait(STOP_S) and not self.control.aborted:
            text = f"what was in flight did not end within {STOP_S:g} s: it is let go, and is no failure"
            self.emit(Logged(at=time.time(), level="warning", text=text))
            self.abort()

    def skip(self, kernel: str) -> None:
        """End this kernel's search with what it has, even while a candidate hangs; the run goes on."""
        self.control.skip(kernel)

    def set_patience(self, kernel: str, patience: int) -> None:
        """The kernel's patience, from its next candidate on. Raises ValueError below 1."""
        self.control.set_patience(kernel, patience)

    def kill_compile(self, number: int, kernel: str = "", schedule: str = "") -> bool:
        """End a compile that a CompilersSeen event numbers; its candidate fails. False if it has ended by itself.

        `kernel` and `schedule` say whose it is, for the record.
        """
        device = self._device
        ended = device is not None and device.kill_compile(number)
        if ended:
            self.control.note(Verb.KILL, kernel, schedule)
        return ended

    def enqueue(self, wanted: Sequence[Retune]) -> None:
        """Tune kernels again when what is on now has ended. Raises ValueError where nothing takes them any more."""
        if not self._queues or not self.control.enqueue(wanted):
            raise ValueError("this run takes no more kernels; press r again when it has ended")
        self.emit(QueueChanged(at=time.time(), kernels=tuple(one.kernel for one in self.control.queue)))

    def abort(self) -> None:
        """Stop now: the candidate in flight is lost, nothing else."""
        self.control.abort()
        device = self._device
        if device is not None:
            device.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the engine thread ends; True when it has."""
        return self._done.wait(timeout)

    def drain(self, limit: int = 5000) -> list[Event]:
        """Take up to `limit` events, oldest first, without waiting."""
        return self._inbox.drain(limit)

    def close(self) -> None:
        """Abort what still runs and wait a few seconds for it; leaves no process behind."""
        if self._thread is not None and not self._done.is_set():
            self.abort()
            self._done.wait(5.0)

    def __enter__(self) -> TuningSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def emit(self, event: Event) -> None:
        self._inbox.put(event)

    def change_state(self, state: RunState, reason: str = "") -> None:
        self._state = state
        self.emit(StateChanged(at=time.time(), state=state, reason=reason))

    def own_device(self, device: Device) -> Device:
        """Remember the device, so that an abort from another thread can close it."""
        self._device = device
        if self.control.aborted:
            device.close()
        return device

    def _run(self) -> None:
        try:
            summaries = self._work(self)
            self._tell_late_acts()
            if summaries:
                self.summary = total(summaries)
                self.emit(self.summary)
            self.change_state(RunState.STOPPED if self.control.stopping else RunState.FINISHED)
        except (CaptureError, DeviceError, StoreError, ValueError) as error:
            self._fail(str(error))
        except Exception as error:
            if self.control.aborted:  # what it worked with was closed under it
                _LOG.info("the run was closed in the middle: %s: %s", type(error).__name__, error)
            else:
                _LOG.exception("the engine thread failed")
            self._fail(f"internal error: {type(error).__name__}: {error}")
        finally:
            self._done.set()

    def _tell_late_acts(self) -> None:
        """What was asked after the last checkpoint, for whoever looks on."""
        for act in self.control.take_acts():
            self.emit(Acted(at=act.at, verb=act.verb, kernel=act.kernel, value=act.value, detail=act.detail))

    def _fail(self, reason: str) -> None:
        if self.control.aborted:
            self.change_state(RunState.STOPPED, "aborted")
            return
        self.failure = reason
        self.change_state(RunState.FAILED, reason)
