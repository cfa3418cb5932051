"""Compiling in parallel, in processes that can be killed: a compiler that hangs or aborts costs one candidate.

Each process belongs to one thread, which starts it, waits for it, kills its whole group past the limit and starts
another. Equal sources at an equal ptxas level compile once, however often they are asked for.
"""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.codegen import KernelSource
from engine.measure.channel import ChannelClosed, Message
from engine.measure.device import DeviceError
from engine.measure.process import Child, Nursery
from engine.vocabulary import BuildReport, Failure, FailureKind, Target

REMEMBERED = 256
"""Compiles that a second request joins: a deploy candidate follows its ranking one closely, and Triton's cache has the
rest. Each holds its request, so many would be a leak."""


@dataclass(frozen=True, slots=True)
class CompileReply:
    """`failure` is None when Triton's cache in the device's folder holds the binary."""

    build: BuildReport
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class CompileLimits:
    """Seconds. A compile may take five times the 90th percentile of those seen, between `low_s` and `high_s`."""

    low_s: float = 10.0
    high_s: float = 60.0
    start_s: float = 120.0
    seen_before_adapting: int = 8

    def limit_s(self, seen: Sequence[float]) -> float:
        """The limit after compiles that took `seen` seconds; `high_s` until there are enough of them."""
        if len(seen) < self.seen_before_adapting:
            return self.high_s
        ranked = sorted(seen)
        return max(self.low_s, min(self.high_s, 5 * ranked[int(0.9 * (len(ranked) - 1))]))


@dataclass(frozen=True, slots=True)
class _Job:
    source: KernelSource
    target: Target
    ptxas_level: int
    future: Future[CompileReply]


class CompilePool:
    """`size` compile processes, started as they are needed. Safe to call from any thread."""

    def __init__(self, nursery: Nursery, command: Sequence[str], size: int, limits: CompileLimits) -> None:
        self._nursery = nursery
        self._command = tuple(command)
        self._size = max(1, size)
        self._limits = limits
        self._folder: Path = nursery.folder / "sources"
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._known: OrderedDict[tuple[str, int], Future[CompileReply]] = OrderedDict()
        self._lock = threading.Lock()
        self._seen: deque[float] = deque(maxlen=200)
        self._threads: list[threading.Thread] = []
        self._children: set[Child] = set()
        self._compiling = 0
        self._waiting = 0
        self._closed = False

    @property
    def compiling(self) -> int:
        """How many compiles run right now."""
        return self._compiling

    def submit(self, source: KernelSource, target: Target, ptxas_level: int) -> Future[CompileReply]:
        """Compile, or join a compile of the same source. The future raises DeviceError if no process can be started."""
        key = (source.fingerprint, ptxas_level)
        future: Future[CompileReply] = Future()
        with self._lock:
            if (known := self._known.get(key)) is not None:
                return known
            self._known[key] = future
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            self._waiting += 1
            busy = self._compiling + self._waiting
            if busy > len(self._threads) and len(self._threads) < self._size:
                thread = threading.Thread(target=self._serve, args=(len(self._threads),), daemon=True)
                self._threads.append(thread)
                thread.start()
        self._jobs.put(_Job(source, target, ptxas_level, future))
        return future

    def close(self) -> None:
        """Kill every compiler with what it started; unfinished futures are cancelled."""
        with self._lock:
            self._closed = True
            children, threads = list(self._children), list(self._threads)
        for child in children:
            child.kill()
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            thread.join()
        for future in self._known.values():
            future.cancel()

    def _serve(self, number: int) -> None:
        child: Child | None = None
        while (job := self._jobs.get()) is not None:
            with self._lock:
                self._waiting -= 1
                self._compiling += 1
            try:
                child, reply = self._compile(job, child, number)
                with suppress(InvalidStateError):
                    job.future.set_result(reply)
            except DeviceError as error:
                child = None
                with suppress(InvalidStateError):
                    job.future.set_exception(error)
            finally:
                with self._lock:
                    self._compiling -= 1
        if child is not None:
            self._bury(child)

    def _compile(self, job: _Job, child: Child | None, number: int) -> tuple[Child | None, CompileReply]:
        """One compile; the child that comes back is None when it had to be killed."""
        if child is None:
            child = self._start(number)
        limit_s = self._limits.limit_s(tuple(self._seen))
        try:
            child.trim_log()
            child.channel.send(
                {
                    "source": job.source.to_json(),
                    "target": asdict(job.target),
                    "folder": str(self._folder),
                    "ptxas_level": job.ptxas_level,
                }
            )
            answer = child.channel.receive(limit_s)
        except TimeoutError:
            self._bury(child)
            failure = Failure(FailureKind.COMPILE_TIMEOUT, "compiling took far longer than that of other candidates")
            return None, CompileReply(BuildReport(compile_s=limit_s), failure)
        except ChannelClosed:
            how = child.death()
            self._bury(child)
            return None, CompileReply(BuildReport(), Failure(FailureKind.CRASH, f"the compiler died of {how}"))
        return child, self._reply(answer)

    def _reply(self, answer: Message) -> CompileReply:
        build = BuildReport(**answer["build"])
        if failure := answer.get("failure"):
            return CompileReply(build, Failure(FailureKind(failure["kind"]), failure["cause"]))
        if build.compile_s is not None:
            self._seen.append(build.compile_s)
        return CompileReply(build)

    def _start(self, number: int) -> Child:
        """A compile process that has said it is ready. Raises DeviceError if two in a row don't."""
        reason = ""
        for _ in range(2):
            try:
                child = self._nursery.start(self._command, f"compile-{number}")
            except OSError as error:
                raise DeviceError(f"a compile process can't be started: {error}") from None
            with self._lock:
                self._children.add(child)
                closed = self._closed
            try:
                if closed:
                    child.kill()
                child.channel.receive(self._limits.start_s)
                return child
            except (ChannelClosed, TimeoutError):
                reason = child.last_line()
                self._bury(child)
                if closed:
                    break
        raise DeviceError(f"a compile process doesn't start: {reason or 'it printed nothing'}")

    def _bury(self, child: Child) -> None:
        with self._lock:
            self._children.discard(child)
        self._nursery.bury(child)
