"""The engine's end of the benchmark process: start it, ask it, say how a candidate took it down, replace it.

Owned by one thread, which must live as long as the process. A candidate's fault is an answer; only a benchmark process
that can't be started at all is a DeviceError.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from engine.measure.channel import ChannelClosed, Message
from engine.measure.device import DeviceError
from engine.measure.health import NOBODY, REMEMBERED_RESPAWNS, Candidate, Respawn, WorkerState
from engine.measure.process import ROOM_RETRY_S, Child, Nursery
from engine.vocabulary import FailureKind

START_TRIES = 2


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """Seconds: to start (imports, driver), to begin a request, and the most that any one step may claim."""

    start_s: float = 180.0
    begin_s: float = 30.0
    step_s: float = 600.0


class WorkerLink:
    """A benchmark process that is there when it is needed."""

    def __init__(self, nursery: Nursery, command: Sequence[str], device: int, limits: WatchLimits) -> None:
        self._nursery = nursery
        self._command = tuple(command)
        self._device = device
        self._limits = limits
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._stopped = False
        self._stopping = threading.Event()
        self.full = ""
        self.starts = 0
        self.renewals = 0
        self.busy_s = 0.0
        self._at: tuple[str, Candidate, float] = ("", NOBODY, time.monotonic())
        self._respawned: deque[Respawn] = deque(maxlen=REMEMBERED_RESPAWNS)

    def start(self) -> Message:
        """Start the process and return its hello. Raises DeviceError, in one sentence, if it can't be had."""
        reason = ""
        for _ in range(START_TRIES):
            if self._stopped:
                break
            try:
                child = self._nursery.start(self._command, f"worker-{self._device}")
            except OSError as error:
                raise DeviceError(f"the benchmark process can't be started: {error}") from None
            with self._lock:
                self._child = child
                if self._stopped:
                    child.kill()
            try:
                child.channel.send({"device": self._device, "folder": str(self._nursery.sources)})
                hello = child.channel.receive(self._limits.start_s)
            except TimeoutError:
                reason = f"it said nothing for {self._limits.start_s:.0f} s"
            except ChannelClosed:
                line = child.last_line()
                reason = f"it died of {child.death()}" + (f" after printing: {line}" if line else "")
            else:
                if "unusable" not in hello:
                    self.starts += 1
                    return hello
                self._drop()
                raise DeviceError(str(hello["unusable"]))
            self._drop()
        raise DeviceError(f"the benchmark process doesn't start: {reason or 'the device is closed'}")

    @property
    def state(self) -> WorkerState | None:
        """What the process is at; None while there is none. From any thread."""
        child, (step, candidate, since) = self._child, self._at
        if child is None:
            return None
        return WorkerState(f"cuda:{self._device}", child.pid, step, candidate, time.monotonic() - since)

    @property
    def respawned(self) -> tuple[Respawn, ...]:
        """The processes that candidates took down, oldest first. From any thread."""
        with self._lock:
            return tuple(self._respawned)

    def ask(self, request: Message, candidate: Candidate = NOBODY) -> Message:
        """The answer to one request; what the candidate does to the process becomes a failure in the answer."""
        if self._child is None:
            self.start()
        child = self._child
        if child is None:
            raise DeviceError("the device is closed")
        child.trim_log()
        start = time.perf_counter()
        try:
            answer = self._converse_with_room(child, request, candidate)
        finally:
            self.busy_s += time.perf_counter() - start
            self._at = ("", NOBODY, time.monotonic())
        if answer.get("broken"):
            self._drop()
            if not self._stopped:
                self._note(candidate, str(answer["failure"]["cause"]))
        return answer

    def renew(self) -> None:
        """End a process in good health, so that the next request gets a fresh one. For the owning thread."""
        if self._child is not None:
            self.renewals += 1
            self._drop()

    def interrupt(self) -> None:
        """From any thread, for good: the process dies and nothing starts it again."""
        with self._lock:
            self._stopped = True
            self._stopping.set()
            child = self._child
        if child is not None:
            child.kill()

    def stop(self) -> None:
        """From the owning thread: kill the process and free what it held."""
        self.interrupt()
        self._drop()

    def _converse_with_room(self, child: Child, request: Message, candidate: Candidate) -> Message:
        """The answer, asked for again while the process finds no space on the disk."""
        while "full" in (answer := self._converse(child, request, candidate)):
            self.full = str(answer["full"])
            if self._stopping.wait(ROOM_RETRY_S):
                raise DeviceError("the device is closed")
        self.full = ""
        return answer

    def _converse(self, child: Child, request: Message, candidate: Candidate) -> Message:
        step, limit_s = "start", self._limits.begin_s
        self._at = (step, candidate, time.monotonic())
        try:
            child.channel.send(request)
            while "id" not in (message := child.channel.receive(limit_s)):
                step = str(message["step"])
                self._at = (step, candidate, time.monotonic())
                limit_s = min(float(message["limit_s"]), self._limits.step_s)
        except TimeoutError:
            return _lost(FailureKind.HANG, f"its {step} did not end within {max(1.0, limit_s):.0f} s")
        except ChannelClosed:
            return _lost(FailureKind.CRASH, f"the benchmark process died of {child.death()} in its {step}")
        return message

    def _note(self, candidate: Candidate, cause: str) -> None:
        with self._lock:
            self._respawned.append(Respawn(time.time(), f"cuda:{self._device}", "benchmark", candidate, cause))

    def _drop(self) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            self._nursery.bury(child)


def _lost(kind: FailureKind, cause: str) -> Message:
    return {"failure": {"kind": kind.value, "cause": cause}, "broken": True}
