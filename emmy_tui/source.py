"""Where the screen's events come from: a session, live or replayed, or a database that is followed.

The screen knows no engine room but through a `Source`. A source never blocks the caller: what is slow (importing the
engine, opening a session, waiting for rows) happens on a daemon thread, so that the first frame and quit never wait.
A failure on that thread becomes a `StateChanged` event with its sentence, because nobody sees a thread's traceback.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from emmy_tui.stopped import is_stopped, stopped_words
from engine.events import Event, Logged, RunState, StateChanged
from engine.vocabulary import Schedule

LOG = logging.getLogger("emmy_tui")


class Mode(StrEnum):
    """What the header says of where the events come from."""

    LIVE = "LIVE"
    REPLAY = "REPLAY"
    BROWSE = "BROWSE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anew(Event):
    """What follows belongs to another run: whoever folds events begins with an empty snapshot."""


@dataclass(frozen=True, slots=True)
class Again:
    """A kernel to tune again, by its structural key and its name; with `schedule`, that candidate alone is measured."""

    kernel: str
    label: str
    schedule: Schedule | None = None


class Source(Protocol):
    """A stream of events and, where `capabilities` says so, the verbs that steer it. Every call returns at once."""

    @property
    def mode(self) -> Mode: ...

    @property
    def title(self) -> str:
        """What is tuned or shown, in a few words."""

    @property
    def database(self) -> str:
        """The database's path as a person would type it, or ""."""

    @property
    def capabilities(self) -> frozenset[str]:
        """Which of start, pause, resume, stop, skip, patience and retune do something now."""

    @property
    def locate(self) -> Callable[[], Path] | None:
        """Says where the database is, and may take its time; None where there is none to read."""

    @property
    def badges(self) -> tuple[str, ...]:
        """What a person should know of the file, in capitals: NOT UPDATING (why), WRITER SILENT 11m, FILE REPLACED;
        and whether who writes it was stopped by a signal."""

    @property
    def reading(self) -> bool:
        """Whether what a file holds already is still on its way to the screen."""

    @property
    def trouble(self) -> str:
        """Why a file can't be read at the moment, in one sentence; "" while it can."""

    @property
    def heard_s(self) -> float | None:
        """Seconds since the run that another process writes said something; None where no run is followed."""

    @property
    def lost(self) -> bool:
        """Whether the run that is shown never told of its end and is taken for ended."""

    @property
    def unwritable(self) -> str:
        """Why nothing can be written to the database, in one sentence; "" where it can."""

    @property
    def dropped(self) -> int:
        """Events that the bounded inbox had to let go."""

    def drain(self, limit: int) -> list[Event]:
        """Up to `limit` waiting events, oldest first."""

    def start(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def stop(self) -> None:
        """Stop after the candidate in flight."""

    def skip(self, kernel: str) -> None:
        """End the kernel's search with what it has."""

    def set_patience(self, kernel: str, patience: int) -> None: ...

    def kill_compile(self, number: int, kernel: str, schedule: str) -> None:
        """End a compile that runs; its candidate fails."""

    def enqueue(self, wanted: Sequence[Again]) -> None:
        """Tune kernels again after what is on now."""

    def abort(self) -> None:
        """Stop without waiting for the candidate in flight."""

    def close(self) -> None: ...


class Session(Protocol):
    """What is asked of a tuning session; `engine.session` has one in this process and one in a process of its own."""

    @property
    def state(self) -> RunState: ...

    @property
    def capabilities(self) -> frozenset[str]: ...

    @property
    def pid(self) -> int | None:
        """The process that it runs in; None for this one, and while there is none."""

    @property
    def dropped(self) -> int: ...

    def drain(self, limit: int = ...) -> list[Event]: ...

    def start(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def stop(self) -> None: ...

    def skip(self, kernel: str) -> None: ...

    def set_patience(self, kernel: str, patience: int) -> None: ...

    def kill_compile(self, number: int, kernel: str = ..., schedule: str = ...) -> bool: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


Queue = Callable[[Session, Sequence[Again]], None]


ENDED = (RunState.STOPPED, RunState.FINISHED, RunState.FAILED)


def failed(error: BaseException) -> StateChanged:
    return StateChanged(at=time.time(), state=RunState.FAILED, reason=str(error) or type(error).__name__)


class SessionSource:
    """A session that is built by `factory` on a thread of its own, and built anew when it is started again."""

    def __init__(
        self,
        factory: Callable[[], Session],
        mode: Mode,
        title: str,
        database: str,
        *,
        autostart: bool = True,
        locate: Callable[[], Path] | None = None,
        queue: Queue | None = None,
    ) -> None:
        self.mode = mode
        self.title = title
        self.database = database
        self.locate = locate
        self.reading = False
        self.trouble = self.unwritable = ""
        self.heard_s: float | None = None
        self.lost = False
        self._factory = factory
        self._queue = queue
        self._session: Session | None = None
        self._opening = False
        self._lock = threading.Lock()
        self._closed = False
        self._own: deque[Event] = deque()
        if autostart:
            self.start()

    def _open(self) -> None:
        try:
            session = self._factory()
            session.start()
            with self._lock:
                self._session, self._opening = session, False
                late = self._closed
            if late:
                session.close()
        except Exception as error:
            LOG.exception("the session could not be opened")
            self._own.append(failed(error))
            self._opening = False

    @property
    def capabilities(self) -> frozenset[str]:
        if self._opening:
            return frozenset()
        if self._session is None or self._session.state in ENDED:
            return frozenset({"start"})
        verbs = self._session.capabilities
        return verbs if self._queue is not None else verbs - {"retune"}

    @property
    def badges(self) -> tuple[str, ...]:
        """Whether the tuner was stopped by a signal: it can't say so itself."""
        pid = self._session.pid if self._session is not None else None
        return (stopped_words("TUNER", pid),) if pid is not None and is_stopped(pid) else ()

    @property
    def dropped(self) -> int:
        return self._session.dropped if self._session else 0

    def drain(self, limit: int) -> list[Event]:
        events: list[Event] = []
        while self._own and len(events) < limit:
            events.append(self._own.popleft())
        if self._session and len(events) < limit:
            events += self._session.drain(limit - len(events))
        return events

    def start(self) -> None:
        """Open a session and start it; a session that ended is replaced, and its events are followed by an `Anew`."""
        with self._lock:
            if self._opening or self._closed or (self._session and self._session.state not in ENDED):
                return
            self._opening = True
            if self._session is not None:
                self._session = None
                self._own.append(Anew(at=time.time()))
        threading.Thread(target=self._open, name="emmy-open", daemon=True).start()

    def _ask(self, verb: str, act: Callable[[Session], None]) -> None:
        """Ask the session on a thread of its own, since a verb may wait for the engine."""
        session = self._session
        if session is None:
            return

        def ask() -> None:
            try:
                act(session)
            except Exception as error:
                LOG.exception("%s was refused", verb)
                self._own.append(Logged(at=time.time(), level="error", text=f"{verb} was refused: {error}"))

        threading.Thread(target=ask, name=f"emmy-{verb}", daemon=True).start()

    def pause(self) -> None:
        self._ask("pause", lambda session: session.pause())

    def resume(self) -> None:
        self._ask("resume", lambda session: session.resume())

    def stop(self) -> None:
        self._ask("stop", lambda session: session.stop())

    def skip(self, kernel: str) -> None:
        self._ask("skip", lambda session: session.skip(kernel))

    def set_patience(self, kernel: str, patience: int) -> None:
        self._ask("patience", lambda session: session.set_patience(kernel, patience))

    def kill_compile(self, number: int, kernel: str, schedule: str) -> None:
        def kill(session: Session) -> None:
            session.kill_compile(number, kernel, schedule)

        self._ask("ending a compile", kill)

    def enqueue(self, wanted: Sequence[Again]) -> None:
        queue = self._queue
        if queue is not None:
            self._ask("retune", lambda session: queue(session, wanted))

    def abort(self) -> None:
        self._ask("abort", lambda session: session.abort())

    def close(self) -> None:
        """End the session; returns when it has, or at once if it never opened."""
        with self._lock:
            self._closed = True
            session = self._session
        if session is not None:
            session.close()
