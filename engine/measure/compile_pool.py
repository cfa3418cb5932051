"""Compiling in parallel, in processes that can be killed: a compiler that hangs or aborts costs one candidate.

Each process belongs to one thread, which starts it, waits for it, kills its whole group past the limit and starts
another. Equal sources at an equal ptxas level compile once, however often they are asked for.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.codegen import KernelSource
from engine.measure.answers import failure_in
from engine.measure.channel import ChannelClosed, Message
from engine.measure.device import DeviceError
from engine.measure.health import NOBODY, REMEMBERED_RESPAWNS, Candidate, Compiling, Respawn
from engine.measure.process import ROOM_RETRY_S, Child, Nursery
from engine.vocabulary import BuildReport, Failure, FailureKind, Target

REMEMBERED = 256
"""Compiles that a second request joins: a deploy candidate follows its ranking one closely, and Triton's cache has the
rest. Each holds its request, so many would be a leak."""
TOO_LONG = Failure(FailureKind.COMPILE_TIMEOUT, "compiling took far longer than that of other candidates")
ENDED = Failure(FailureKind.COMPILE_TIMEOUT, "a person ended its compile")


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
    candidate: Candidate
    number: int


@dataclass(slots=True)
class _Running:
    """A compile that is on; `killed` once a person has asked for its end."""

    job: _Job
    child: Child
    since: float
    killed: bool = False


class CompilePool:
    """`size` compile processes, started as they are needed. Safe to call from any thread."""

    def __init__(self, nursery: Nursery, command: Sequence[str], size: int, limits: CompileLimits) -> None:
        self._nursery = nursery
        self._command = tuple(command)
        self._size = max(1, size)
        self._limits = limits
        self._folder: Path = nursery.sources
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._known: OrderedDict[tuple[str, int], Future[CompileReply]] = OrderedDict()
        self._lock = threading.Lock()
        self._seen: deque[float] = deque(maxlen=200)
        self._threads: list[threading.Thread] = []
        self._children: set[Child] = set()
        self._running: dict[int, _Running] = {}
        self._respawned: deque[Respawn] = deque(maxlen=REMEMBERED_RESPAWNS)
        self._numbers = 0
        self._full: dict[int, str] = {}
        self._closing = threading.Event()
        self._compiling = 0
        self._waiting = 0
        self._closed = False

    @property
    def compiling(self) -> int:
        """How many compiles run right now."""
        return self._compiling

    @property
    def compiles(self) -> tuple[Compiling, ...]:
        """The compiles that run right now, oldest first."""
        now = time.monotonic()
        with self._lock:
            running = sorted(self._running.values(), key=lambda one: one.since)
            return tuple(Compiling(one.job.number, one.job.candidate, now - one.since) for one in running)

    @property
    def respawned(self) -> tuple[Respawn, ...]:
        """The compile processes that candidates took down, oldest first."""
        with self._lock:
            return tuple(self._respawned)

    def kill(self, number: int) -> bool:
        """End a compile that runs, with everything it started; its source then fails. False if it has ended."""
        with self._lock:
            running = self._running.get(number)
            if running is None:
                return False
            running.killed = True
        running.child.kill()
        return True

    def end_with(self, answer: Future[Any], reply: Future[CompileReply]) -> None:
        """A compile whose `answer` is cancelled isn't begun, or ends with everything it started."""
        answer.add_done_callback(lambda _: self._let_go(reply) if answer.cancelled() else None)

    def _let_go(self, reply: Future[CompileReply]) -> None:
        with self._lock:
            for key in [key for key, known in self._known.items() if known is reply]:
                del self._known[key]
        reply.cancel()
        with self._lock:
            running = [one for one in self._running.values() if one.job.future is reply]
            for one in running:
                one.killed = True
        for one in running:
            one.child.kill()

    def submit(
        self, source: KernelSource, target: Target, ptxas_level: int, candidate: Candidate = NOBODY
    ) -> Future[CompileReply]:
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
            self._numbers += 1
            job = _Job(source, target, ptxas_level, future, candidate, self._numbers)
            busy = self._compiling + self._waiting
            if busy > len(self._threads) and len(self._threads) < self._size:
                thread = threading.Thread(target=self._serve, args=(len(self._threads),), daemon=True)
                self._threads.append(thread)
                thread.start()
        self._jobs.put(job)
        return future

    def close(self) -> None:
        """Kill every compiler with what it started; unfinished futures are cancelled."""
        with self._lock:
            self._closed = True
            self._closing.set()
            children, threads = list(self._children), list(self._threads)
        for child in children:
            child.kill()
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            thread.join()
        for future in self._known.values():
            future.cancel()

    @property
    def full(self) -> str:
        """Where compiles wait for space on a disk, as a sentence; "" while none does."""
        with self._lock:
            return next(iter(self._full.values()), "")

    def _serve(self, number: int) -> None:
        child: Child | None = None
        while (job := self._jobs.get()) is not None:
            with self._lock:
                self._waiting -= 1
                self._compiling += 1
            try:
                if job.future.cancelled():
                    continue
                child, reply = self._compile_with_room(job, child, number)
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

    def _compile_with_room(self, job: _Job, child: Child | None, number: int) -> tuple[Child | None, CompileReply]:
        """One compile, again and again while the disk is full: that is no fault of the source's."""
        try:
            while True:
                child, reply = self._compile(job, child, number)
                if isinstance(reply, CompileReply):
                    return child, reply
                with self._lock:
                    self._full[job.number] = reply
                if self._closing.wait(ROOM_RETRY_S):
                    return child, CompileReply(BuildReport(), Failure(FailureKind.COMPILE_ERROR, reply))
        finally:
            with self._lock:
                self._full.pop(job.number, None)

    def _compile(self, job: _Job, child: Child | None, number: int) -> tuple[Child | None, CompileReply | str]:
        """One compile, or where there is no space for it; the child is None when it had to be killed."""
        if child is None:
            child = self._start(number)
        limit_s = self._limits.limit_s(tuple(self._seen))
        running = self._begin(job, child)
        try:
            if job.future.cancelled():  # it may be killed already
                self._bury(child)
                return None, CompileReply(BuildReport(), ENDED)
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
            self._lose(child, job, TOO_LONG)
            return None, CompileReply(BuildReport(compile_s=limit_s), TOO_LONG)
        except ChannelClosed:
            how = child.death()
            if not running.killed and not self._closing.is_set() and (full := self._nursery.full):
                self._bury(child)
                return None, full
            failure = ENDED if running.killed else Failure(FailureKind.CRASH, f"the compiler died of {how}")
            self._lose(child, job, failure)
            return None, CompileReply(BuildReport(), failure)
        finally:
            with self._lock:
                self._running.pop(job.number, None)
        if running.killed:  # a moment too late for this one, and not for the process
            self._lose(child, job, ENDED)
            return None, self._reply(answer)
        return child, self._reply(answer)

    def _begin(self, job: _Job, child: Child) -> _Running:
        running = _Running(job, child, time.monotonic())
        with self._lock:
            self._running[job.number] = running
        return running

    def _lose(self, child: Child, job: _Job, failure: Failure) -> None:
        """Bury a process that a candidate took down, and remember whose it was, unless nobody waited for it."""
        self._bury(child)
        with self._lock:
            if not self._closed and not job.future.cancelled():
                self._respawned.append(Respawn(time.time(), "", "compiler", job.candidate, failure.cause))

    def _reply(self, answer: Message) -> CompileReply | str:
        if full := answer.get("full"):
            return str(full)
        build = BuildReport(**answer["build"])
        if failure := failure_in(answer):
            return CompileReply(build, failure)
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
