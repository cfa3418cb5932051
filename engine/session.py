"""One tuning session: it owns the engine thread, and everything a screen or a command line asks of it is thread-safe.

The session's process never loads torch: capturing, compiling and timing happen in child processes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

from engine.capture import CaptureError
from engine.events import Event, NodeVisited, RunFinished, RunState, StateChanged
from engine.measure import Device, DeviceError
from engine.store import StoreError
from engine.tune import Control, Host, LiveRequest, ReplayRequest, Settings, tune_live, tune_replay

INBOX_LIMIT = 200_000
_LOG = logging.getLogger(__name__)


class Inbox:
    """Events on their way to whoever drains them. Past the limit, node visits are dropped and counted; nothing else."""

    def __init__(self, limit: int = INBOX_LIMIT) -> None:
        self._events: deque[Event] = deque()
        self._limit = limit
        self._lock = threading.Lock()
        self.dropped = 0

    def put(self, event: Event) -> None:
        with self._lock:
            if len(self._events) >= self._limit and isinstance(event, NodeVisited):
                self.dropped += 1
            else:
                self._events.append(event)

    def drain(self, limit: int) -> list[Event]:
        with self._lock:
            return [self._events.popleft() for _ in range(min(limit, len(self._events)))]


class TuningSession:
    """Start it once; then pause, resume, stop or abort from any thread, and drain its events.

    `failure` is one sentence for a person when the state is FAILED. Use it as a context manager, or call `close`.
    """

    def __init__(self, work: Callable[[Host], list[RunFinished]], settings: Settings) -> None:
        self._work = work
        self.settings = settings
        self.control = Control()
        self._inbox = Inbox()
        self._thread: threading.Thread | None = None
        self._done = threading.Event()
        self._device: Device | None = None
        self._state = RunState.IDLE
        self.failure: str | None = None
        self.summary: RunFinished | None = None

    @classmethod
    def tune(
        cls, code: str, *, database: Path, settings: Settings, device: str = "cuda:0", command: str = ""
    ) -> TuningSession:
        """Capture an expression, tune it on a GPU and record everything in `database`.

        `device` may name several GPUs, separated by commas: a kernel a GPU at a time, with the results of one.
        """
        request = LiveRequest(code, database, device, command)
        return cls(partial(tune_live, request), settings)

    @classmethod
    def replay(
        cls, database: Path, *, settings: Settings, pace: float = 0.0, target: str | None = None
    ) -> TuningSession:
        """Search again over a recorded database, with no GPU; `pace` is seconds a candidate.

        `target` picks the recorded programs whose text contains it; None takes all, one after the other.
        """
        request = ReplayRequest(database, pace, target)
        return cls(partial(tune_replay, request), settings)

    @property
    def state(self) -> RunState:
        return self._state

    @property
    def dropped(self) -> int:
        return self._inbox.dropped

    @property
    def capabilities(self) -> frozenset[str]:
        """The verbs that do something in the present state."""
        if self._thread is None:
            return frozenset({"start"})
        if self._done.is_set() or self._state is RunState.STOPPING:
            return frozenset()
        return frozenset({"stop", "resume" if self.control.paused else "pause"})

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
        """Stop after the candidate in flight; what was measured stays."""
        if not self._done.is_set() and self._thread is not None and not self.control.stopping:
            self.control.stop()
            self.change_state(RunState.STOPPING)

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
            if summaries:
                self.summary = _total(summaries)
                self.emit(self.summary)
            self.change_state(RunState.STOPPED if self.control.stopping else RunState.FINISHED)
        except (CaptureError, DeviceError, StoreError, ValueError) as error:
            self._fail(str(error))
        except Exception as error:
            _LOG.exception("the engine thread failed")
            self._fail(f"internal error: {type(error).__name__}: {error}")
        finally:
            self._done.set()

    def _fail(self, reason: str) -> None:
        if self.control.aborted:
            self.change_state(RunState.STOPPED, "aborted")
            return
        self.failure = reason
        self.change_state(RunState.FAILED, reason)


def _total(summaries: Sequence[RunFinished]) -> RunFinished:
    """One summary of runs made one after the other: counts, sums and wall times add up."""
    if len(summaries) == 1:
        return summaries[0]
    wall = sum(item.wall_s for item in summaries) or 1e-9
    sums = [item.sum_us for item in summaries]
    assembled = [item.assembled_us for item in summaries]
    return RunFinished(
        at=summaries[-1].at,
        measured=sum(item.measured for item in summaries),
        cached=sum(item.cached for item in summaries),
        failed=sum(item.failed for item in summaries),
        best_us=max((item.best_us for item in summaries if item.best_us is not None), default=None),
        sum_us=None if None in sums else sum(us for us in sums if us is not None),
        assembled_us=None if None in assembled else sum(us for us in assembled if us is not None),
        search_share=sum(item.search_share * item.wall_s for item in summaries) / wall,
        gpu_idle_share=sum(item.gpu_idle_share * item.wall_s for item in summaries) / wall,
        wall_s=wall,
    )
