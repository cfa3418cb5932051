"""The engine's end of the benchmark process: start it, ask it, say how a candidate took it down, replace it.

Owned by one thread, which must live as long as the process. A candidate's fault is an answer; only a benchmark process
that can't be started at all is a DeviceError.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from engine.measure.channel import ChannelClosed, Message
from engine.measure.device import DeviceError
from engine.measure.process import Child, Nursery
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
        self.starts = 0
        self.renewals = 0
        self.busy_s = 0.0

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
                child.channel.send({"device": self._device, "folder": str(self._nursery.folder / "sources")})
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

    def ask(self, request: Message) -> Message:
        """The answer to one request; what the candidate does to the process becomes a failure in the answer."""
        if self._child is None:
            self.start()
        child = self._child
        if child is None:
            raise DeviceError("the device is closed")
        child.trim_log()
        start = time.perf_counter()
        try:
            answer = self._converse(child, request)
        finally:
            self.busy_s += time.perf_counter() - start
        if answer.get("broken"):
            self._drop()
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
            child = self._child
        if child is not None:
            child.kill()

    def stop(self) -> None:
        """From the owning thread: kill the process and free what it held."""
        self.interrupt()
        self._drop()

    def _converse(self, child: Child, request: Message) -> Message:
        step, limit_s = "start", self._limits.begin_s
        try:
            child.channel.send(request)
            while "id" not in (message := child.channel.receive(limit_s)):
                step = str(message["step"])
                limit_s = min(float(message["limit_s"]), self._limits.step_s)
        except TimeoutError:
            return _lost(FailureKind.HANG, f"its {step} did not end within {max(1.0, limit_s):.0f} s")
        except ChannelClosed:
            return _lost(FailureKind.CRASH, f"the benchmark process died of {child.death()} in its {step}")
        return message

    def _drop(self) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            self._nursery.bury(child)


def _lost(kind: FailureKind, cause: str) -> Message:
    return {"failure": {"kind": kind.value, "cause": cause}, "broken": True}
