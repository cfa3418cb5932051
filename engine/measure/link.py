"""The engine's end of the benchmark process: start it, ask it, say how a candidate took it down, replace it.

Where one had to be replaced, more will follow: from then on a spare stands by, with its imports done and the GPU open,
and takes over at once. It opens the GPU only while nothing is timed, and then waits in a read; nothing has run in it.
New processes branch off from the stem, which has imported. Without one, imports take seconds, so where candidates take
down one process after the other, a few import beside each other.

Owned by one thread, which must live as long as the process. A candidate's fault is an answer; only a benchmark process
that can't be started at all is a DeviceError.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from engine.measure.begun import Begun
from engine.measure.channel import ChannelClosed, Message
from engine.measure.device import DeviceError
from engine.measure.health import NOBODY, REMEMBERED_RESPAWNS, Candidate, Respawn, WorkerState
from engine.measure.process import ROOM_RETRY_S, Child, Nursery
from engine.measure.stem import Stem
from engine.vocabulary import FailureKind

START_TRIES = 2
BEFORE = "start"
"""What a process is at that hasn't said yet that it is at a candidate: its death is not the candidate's doing."""
UNWANTED = "nobody waited for it any more"
SPARE = "spare"
"""The step of a process that stands by."""
MOST_SPARES = 3
LATELY_S = 10.0
"""Without a stem as many stand by as were lost in so many seconds, about two starts on an H200's host; one at least."""


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """Seconds: to start (imports, driver), to begin a request, and the most that any one step may claim."""

    start_s: float = 180.0
    begin_s: float = 30.0
    step_s: float = 600.0


class WorkerLink:
    """A benchmark process that is there when it is needed."""

    def __init__(
        self,
        nursery: Nursery,
        command: Sequence[str],
        device: int,
        limits: WatchLimits,
        stem_command: Sequence[str] = (),
    ) -> None:
        """Without a `stem_command` each process runs `command` and imports for itself."""
        self._nursery = nursery
        self._stem = Stem(nursery, command, stem_command, f"stem-{device}")
        self._device = device
        self._limits = limits
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._spares: deque[Begun] = deque()
        self._lost_at: deque[float] = deque(maxlen=MOST_SPARES)
        self._begun = 0
        self._stopped = False
        self._stopping = threading.Event()
        self.full = ""
        self.unwanted = False
        self.starts = 0
        self.renewals = 0
        self.busy_s = 0.0
        self._at: tuple[str, Candidate, float] = ("", NOBODY, time.monotonic())
        self._respawned: deque[Respawn] = deque(maxlen=REMEMBERED_RESPAWNS)

    def start(self) -> Message:
        """Start the process and return its hello. Raises DeviceError, in one sentence, if it can't be had."""
        if (hello := self._take_over()) is not None:
            return hello
        reason = ""
        for _ in range(START_TRIES):
            if self._stopped:
                break
            try:
                begun = self._begin()
            except OSError as error:
                raise DeviceError(f"the benchmark process can't be started: {error}") from None
            child = begun.child
            with self._lock:
                self._child = child
                if self._stopped:
                    child.kill()
            try:
                hello = begun.hello(self._limits.start_s)
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
    def states(self) -> tuple[WorkerState, ...]:
        """What the process is at, and the spares that stand by, as far as they are there. From any thread."""
        device, now = f"cuda:{self._device}", time.monotonic()
        with self._lock:
            child, spares, (step, candidate, since) = self._child, tuple(self._spares), self._at
        working = () if child is None else (WorkerState(device, child.pid, step, candidate, now - since),)
        return working + tuple(WorkerState(device, one.child.pid, SPARE, NOBODY, now - one.since) for one in spares)

    @property
    def missing(self) -> str:
        """Why a new process takes seconds instead of a moment, as a sentence; "" where it doesn't. From any thread."""
        why = self._stem.missing
        return (
            f"each new benchmark process takes seconds: what it would branch off from can't be used ({why})"
            if why
            else ""
        )

    @property
    def preparing(self) -> bool:
        """Whether the next spare has still to open the GPU: `prepare` wants a moment in which nothing is timed."""
        return bool(self._spares) and self._spares[0].pending

    def prepare(self) -> None:
        """Let the next spare open the GPU, if it is that far. For the owning thread, while it has nothing to ask."""
        try:
            if self._spares:
                self._spares[0].prepare()
        except ChannelClosed:
            self._drop_spare(self._spares[0])

    @property
    def respawned(self) -> tuple[Respawn, ...]:
        """The processes that candidates took down, oldest first. From any thread."""
        with self._lock:
            return tuple(self._respawned)

    def ask(self, request: Message, candidate: Candidate = NOBODY) -> Message:
        """The answer to one request; what the candidate does to the process becomes a failure in the answer."""
        child = self._at_work()
        self._settle_spares()
        child.trim_log()
        start = time.perf_counter()
        try:
            answer = self._converse_with_room(child, request, candidate)
        finally:
            self.busy_s += time.perf_counter() - start
            self._at = ("", NOBODY, time.monotonic())
        if answer.get("broken"):
            self._drop()
            if self.unwanted:
                self.renewals += 1
            elif not self._stopped:
                self._note(candidate, str(answer["failure"]["cause"]))
            self._lost_at.append(time.monotonic())
            self._begin_spares()
        return answer

    def renew(self) -> None:
        """End a process in good health, so that the next request gets a fresh one. For the owning thread."""
        if self._child is not None:
            self.renewals += 1
            self._drop()
            self._begin_spares()

    def let_go(self) -> None:
        """From any thread: nobody wants the answer to the request that is on; what it takes down is nobody's fault.

        The next request wants one again: the owner sets `unwanted` to False before it.
        """
        with self._lock:
            self.unwanted = True
            child = self._child
        if child is not None:
            child.kill()

    def interrupt(self) -> None:
        """From any thread, for good: the process dies and nothing starts it again."""
        with self._lock:
            self._stopped = True
            self._stopping.set()
            children = [one.child for one in self._spares]
            if self._child is not None:
                children.append(self._child)
        for child in children:
            child.kill()
        self._stem.interrupt()

    def stop(self) -> None:
        """From the owning thread: kill the processes and free what they held."""
        self.interrupt()
        self._drop()
        for spare in tuple(self._spares):
            self._drop_spare(spare)
        self._stem.close()

    def _begin(self) -> Begun:
        """A process that has imported, or does so from now on. Raises OSError.

        Logs are used by turns: what lives has its own.
        """
        self._begun += 1
        name = f"worker-{self._device}-{self._begun % (MOST_SPARES + 1)}"
        child = self._stem.start(name, self._limits.start_s)
        return Begun(child, {"device": self._device, "folder": str(self._nursery.sources)})

    def _begin_spares(self) -> None:
        """Have one process stand by, or where it imports for itself, as many as were lost lately.

        They can be done without where none can be started.
        """
        now = time.monotonic()
        wanted = 1 if self._stem.stands else max(1, sum(now - at < LATELY_S for at in self._lost_at))
        while len(self._spares) < wanted and not self._stopped:
            try:
                spare = self._begin()
            except OSError:
                return
            with self._lock:
                self._spares.append(spare)
                if self._stopped:
                    spare.child.kill()

    def _settle_spares(self) -> None:
        """See to it that spares leave the GPU alone, and let go those that are of no use."""
        for spare in tuple(self._spares):
            if not spare.settled(self._limits.begin_s):
                self._drop_spare(spare)

    def _take_over(self) -> Message | None:
        """Put a spare to work and begin another; None where there is none, or it turns out to be of no use."""
        self._settle_spares()
        with self._lock:
            spare = self._spares.popleft() if self._spares else None
            if spare is None:
                return None
            self._child = spare.child
        with suppress(ChannelClosed):
            spare.prepare()
        self._begin_spares()
        try:
            hello = spare.hello(self._limits.start_s)
        except (ChannelClosed, TimeoutError):
            hello = {"unusable": "it is gone"}
        if "unusable" in hello:
            self._drop()
            return None
        self.starts += 1
        return hello

    def _converse_with_room(self, child: Child, request: Message, candidate: Candidate) -> Message:
        """The answer, asked for again while there is no space on the disk: of a new process if that took it down, or if
        it was gone before it began, once."""
        try:
            answer = self._converse(child, request, candidate)
            if "gone" in answer:
                child = self._renewed()
                answer = self._converse(child, request, candidate)
            while "full" in answer:
                self.full = str(answer["full"])
                self._wait_for_room()
                if answer.get("broken"):
                    while self._nursery.full:
                        self._wait_for_room()
                    child = self._renewed()
                answer = self._converse(child, request, candidate)
            return answer
        finally:
            self.full = ""

    def _wait_for_room(self) -> None:
        if self._stopping.wait(ROOM_RETRY_S):
            raise DeviceError("the device is closed")

    def _renewed(self) -> Child:
        """A new process in the place of one that is gone, which is nobody's fault. Raises DeviceError."""
        self.renewals += 1
        self._drop()
        return self._at_work()

    def _at_work(self) -> Child:
        """The process, which is started if there is none. Raises DeviceError."""
        if self._child is None:
            self.start()
        child = self._child
        if child is None:
            raise DeviceError("the device is closed")
        return child

    def _converse(self, child: Child, request: Message, candidate: Candidate) -> Message:
        step, limit_s = BEFORE, self._limits.begin_s
        if self.unwanted:
            return _lost(FailureKind.HANG, UNWANTED)
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
            if self.unwanted:
                return _lost(FailureKind.HANG, UNWANTED)
            how = child.death()
            if not self._stopped and (full := self._nursery.full):
                return {"full": full, "broken": True}
            answer = _lost(FailureKind.CRASH, f"the benchmark process died of {how} in its {step}")
            nobodys = not self._stopped and (self._stem.has_fallen() or step == BEFORE)
            return answer | {"gone": True} if nobodys else answer
        return message

    def _note(self, candidate: Candidate, cause: str) -> None:
        with self._lock:
            self._respawned.append(Respawn(time.time(), f"cuda:{self._device}", "benchmark", candidate, cause))

    def _drop(self) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            self._nursery.bury(child)

    def _drop_spare(self, spare: Begun) -> None:
        with self._lock:
            self._spares.remove(spare)
        self._nursery.bury(spare.child)


def _lost(kind: FailureKind, cause: str) -> Message:
    return {"failure": {"kind": kind.value, "cause": cause}, "broken": True}
