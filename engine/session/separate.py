"""A tuning session in a process of its own, with the verbs of `TuningSession`.

A screen that draws in the engine's process holds the interpreter while the search threads wait for it: 2 % of their
throughput on an H200. Here the two share nothing but a channel, and a driver that crashes takes no screen with it.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Protocol

from engine.events import Event, RunFinished, RunState, StateChanged
from engine.measure import ChannelClosed, Message
from engine.measure.channel import Channel
from engine.session.engine_process import EngineProcess
from engine.session.event_batch import unpack_events
from engine.session.inbox import Inbox
from engine.session.tuning import TuningSession
from engine.tune import Retune, Settings, packed, unpacked

ANSWER_S = 10.0
"""How long an answer is waited for. A process that is busy answers in milliseconds."""
ABORT_S, KILLED_S = 5.0, 5.0
GONE = "the tuner's process has ended"
_LOG = logging.getLogger(__name__)


class Engine(Protocol):
    """The process that a session runs in, as `EngineProcess` is one; for the thread that began it."""

    @property
    def pid(self) -> int: ...

    @property
    def channel(self) -> Channel: ...

    def kill(self) -> None:
        """From any thread."""

    def how_it_ended(self) -> str: ...

    def close(self) -> None: ...


class SeparateSession:
    """Start it once; see `TuningSession`, whose verbs and properties it has.

    `state` and `capabilities` are what the process said last, a tenth of a second ago at most. Where it dies, the state
    is FAILED and `failure` says so. Use it as a context manager, or call `close`.
    """

    def __init__(
        self, session: TuningSession, *, log: int | None = None, begin: Callable[[], Engine] | None = None
    ) -> None:
        """`session` says what is to be done, and isn't started here. `log` is the fd that the process prints to.

        `begin` starts another process than the usual one. Raises what pickling raises for work that can't travel.
        """
        self.settings: Settings = session.settings
        self.failure: str | None = None
        self.summary: RunFinished | None = None
        self._order: Message = {"work": packed(session.order)}
        self._verbs = session.verbs_of_a_run
        self._begin = begin or partial(EngineProcess, log)
        self._inbox = Inbox()
        self._dropped_there = 0
        self._state = RunState.IDLE
        self._thread: threading.Thread | None = None
        self._engine: Engine | None = None
        self._waiting: list[Message] = []
        self._calls: dict[int, Future[Any]] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._aborted = False
        self._done = threading.Event()

    @property
    def state(self) -> RunState:
        return self._state

    @property
    def pid(self) -> int | None:
        """The number of the process; None while there is none."""
        engine = self._engine
        return None if engine is None or self._done.is_set() else engine.pid

    @property
    def dropped(self) -> int:
        return self._inbox.dropped + self._dropped_there

    @property
    def capabilities(self) -> frozenset[str]:
        """The verbs that do something in the present state."""
        if self._thread is None:
            return frozenset({"start"})
        return frozenset() if self._done.is_set() else self._verbs

    def start(self) -> None:
        """Start the process and the engine in it; later calls do nothing."""
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name="emmy-session", daemon=True)
        self._change_state(RunState.CAPTURING)
        self._thread.start()

    def pause(self) -> None:
        """Hold after the candidate in flight."""
        self._ask("pause")

    def resume(self) -> None:
        self._ask("resume")

    def stop(self) -> None:
        """Stop after the candidate in flight, which has a moment to end; what was measured stays."""
        self._ask("stop")

    def skip(self, kernel: str) -> None:
        """End this kernel's search with what it has, even while a candidate hangs; the run goes on."""
        self._ask("skip", kernel)

    def set_patience(self, kernel: str, patience: int) -> None:
        """The kernel's patience, from its next candidate on. Raises ValueError below 1, and once the run has ended."""
        self._answered(self._ask("set_patience", kernel, patience))

    def kill_compile(self, number: int, kernel: str = "", schedule: str = "") -> bool:
        """End a compile that a CompilersSeen event numbers; its candidate fails. False if it has ended by itself."""
        return not self._done.is_set() and bool(self._answered(self._ask("kill_compile", number, kernel, schedule)))

    def enqueue(self, wanted: Sequence[Retune]) -> None:
        """Tune kernels again when what is on now has ended. Raises ValueError where nothing takes them any more."""
        self._answered(self._ask("enqueue", tuple(wanted)))

    def abort(self) -> None:
        """Stop now: the candidate in flight is lost, nothing else."""
        self._aborted = True
        self._ask("abort")

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the process has ended; True when it has."""
        return self._done.wait(timeout)

    def drain(self, limit: int = 5000) -> list[Event]:
        """Take up to `limit` events, oldest first, without waiting."""
        return self._inbox.drain(limit)

    def close(self) -> None:
        """Abort what still runs and wait a few seconds for it; then the process is killed. Leaves none behind."""
        if self._thread is None or self._done.is_set():
            return
        self.abort()
        if not self._done.wait(ABORT_S):
            engine = self._engine
            if engine is not None:
                engine.kill()
            self._done.wait(KILLED_S)

    def __enter__(self) -> SeparateSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, verb: str, *given: object) -> Future[Any]:
        """Ask the process, or let the request wait until there is one; the answer comes later."""
        answer: Future[Any] = Future()
        with self._lock:
            if self._thread is None or self._done.is_set():
                answer.set_exception(ValueError(GONE if self._thread is not None else "the run has not been started"))
                return answer
            number = next(self._numbers)
            self._calls[number] = answer
            message = {"call": number, "verb": verb, "given": packed(given)}
            if self._engine is None:
                self._waiting.append(message)
                return answer
            with suppress(ChannelClosed):  # whoever reads the channel answers then
                self._engine.channel.send(message)
        return answer

    def _answered(self, answer: Future[Any]) -> Any:
        try:
            return answer.result(ANSWER_S)
        except TimeoutError:
            raise ValueError(f"the tuner's process does not answer within {ANSWER_S:.0f} s") from None

    def _run(self) -> None:
        """The process from its start to its end, on the thread that its life is tied to."""
        try:
            engine = self._begin()
        except OSError as error:
            self._fail(f"the tuner's process can't be started: {error.strerror or error}")
            return self._let_go()
        try:
            self._connect(engine)
            while not self._take(engine.channel.receive()):
                pass
            engine.channel.send({"heard": True})
        except ChannelClosed:
            self._lost(engine)
        except Exception as error:
            _LOG.exception("what the tuner's process says can't be taken")
            self._fail(f"internal error: {type(error).__name__}: {error}")
        finally:
            engine.close()
            self._let_go()

    def _connect(self, engine: Engine) -> None:
        """Say what is to be done, and what was asked meanwhile."""
        with self._lock:
            self._engine = engine
            engine.channel.send(self._order)
            for message in self._waiting:
                engine.channel.send(message)

    def _take(self, message: Message) -> bool:
        """Take what the process says; whether that is its last word."""
        for number, value, refusal in message.get("answers", ()):
            self._answer(number, value, refusal)
        if "events" in message:
            self._inbox.put_all(filter(self._is_news, unpack_events(message["events"])))
        if "state" in message:
            self._dropped_there, self._verbs = message["dropped"], frozenset(message["verbs"])
            if message["state"] != RunState.IDLE:
                self._state = RunState(message["state"])
        if "over" not in message:
            return False
        self.failure, self.summary = message["over"]["failure"], unpacked(message["over"]["summary"])
        return True

    def _is_news(self, event: Event) -> bool:
        """That it captures was said when the process was begun."""
        return not (isinstance(event, StateChanged) and event.state == RunState.CAPTURING)

    def _answer(self, number: int, value: object, refusal: str) -> None:
        with self._lock:
            answer = self._calls.pop(number)
        if refusal:
            answer.set_exception(ValueError(refusal))
        else:
            answer.set_result(value)

    def _lost(self, engine: Engine) -> None:
        """The process ended without a last word."""
        how = engine.how_it_ended()
        if self._aborted:
            self._change_state(RunState.STOPPED, "aborted")
            return
        why = ", as the system does where memory runs out" if how.endswith("SIGKILL") else ""
        kept = "what was measured is kept, the log says more, and the run can be started again"
        self._fail(f"the tuner's process {how}{why}; {kept}")

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self._change_state(RunState.FAILED, reason)

    def _change_state(self, state: RunState, reason: str = "") -> None:
        self._inbox.put(StateChanged(at=time.time(), state=state, reason=reason))
        self._state = state

    def _let_go(self) -> None:
        """Whoever waits for an answer gets none."""
        with self._lock:
            self._done.set()
            calls = tuple(self._calls.values())
            self._calls.clear()
        for answer in calls:
            with suppress(InvalidStateError):
                answer.set_exception(ValueError(GONE))
