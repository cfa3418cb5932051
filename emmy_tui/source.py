"""Where the screen's events come from: a session in this process, live or replayed, or a database that is followed.

The screen knows no engine room but through a `Source`. A source never blocks the caller: what is slow (importing the
engine, opening a session, waiting for rows) happens on a daemon thread, so that the first frame and quit never wait.
A failure on that thread becomes a `StateChanged` event with its sentence, because nobody sees a thread's traceback.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from engine.events import Event, Logged, RunStarted, RunState, StateChanged
from engine.store import Store, StoredRun, StoreError

LOG = logging.getLogger("emmy_tui")

INBOX_LIMIT = 50_000
POLL_S = 0.2
NEW_RUN_S = 1.0
SILENT_S = 600.0


class Mode(StrEnum):
    """What the header says of where the events come from."""

    LIVE = "LIVE"
    REPLAY = "REPLAY"
    BROWSE = "BROWSE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anew(Event):
    """What follows belongs to another run: whoever folds events begins with an empty snapshot."""


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
        """Which of "start", "pause", "resume" and "stop" do something now."""

    @property
    def locate(self) -> Callable[[], Path] | None:
        """Says where the database is, and may take its time; None where there is none to read."""

    @property
    def badges(self) -> tuple[str, ...]:
        """What a person should know of the file, in capitals: FROZEN COPY, WRITER SILENT 11m, FILE REPLACED."""

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

    def abort(self) -> None:
        """Stop without waiting for the candidate in flight."""

    def close(self) -> None: ...


class Session(Protocol):
    """What is asked of a tuning session; `engine.session.TuningSession` is one."""

    @property
    def state(self) -> RunState: ...

    @property
    def capabilities(self) -> frozenset[str]: ...

    @property
    def dropped(self) -> int: ...

    def drain(self, limit: int = ...) -> list[Event]: ...

    def start(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def stop(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


_ENDED = (RunState.STOPPED, RunState.FINISHED, RunState.FAILED)


def _failed(error: BaseException) -> StateChanged:
    return StateChanged(at=time.time(), state=RunState.FAILED, reason=str(error) or type(error).__name__)


class SessionSource:
    """A session of this process, built by `factory` on a thread of its own, and built anew when it is started again."""

    def __init__(
        self,
        factory: Callable[[], Session],
        mode: Mode,
        title: str,
        database: str,
        *,
        autostart: bool = True,
        locate: Callable[[], Path] | None = None,
    ) -> None:
        self.mode = mode
        self.title = title
        self.database = database
        self.locate = locate
        self.badges: tuple[str, ...] = ()
        self._factory = factory
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
            self._own.append(_failed(error))
            self._opening = False

    @property
    def capabilities(self) -> frozenset[str]:
        if self._opening:
            return frozenset()
        if self._session is None or self._session.state in _ENDED:
            return frozenset({"start"})
        return self._session.capabilities

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
            if self._opening or self._closed or (self._session and self._session.state not in _ENDED):
                return
            self._opening = True
            if self._session is not None:
                self._session = None
                self._own.append(Anew(at=time.time()))
        threading.Thread(target=self._open, name="emmy-open", daemon=True).start()

    def _ask(self, verb: str) -> None:
        """Ask the session on a thread of its own, since a verb may wait for the engine."""
        session = self._session
        if session is None:
            return

        def ask() -> None:
            try:
                getattr(session, verb)()
            except Exception as error:
                LOG.exception("%s was refused", verb)
                self._own.append(Logged(at=time.time(), level="error", text=f"{verb} was refused: {error}"))

        threading.Thread(target=ask, name=f"emmy-{verb}", daemon=True).start()

    def pause(self) -> None:
        self._ask("pause")

    def resume(self) -> None:
        self._ask("resume")

    def stop(self) -> None:
        self._ask("stop")

    def abort(self) -> None:
        self._ask("abort")

    def close(self) -> None:
        """End the session; returns when it has, or at once if it never opened."""
        with self._lock:
            self._closed = True
            session = self._session
        if session is not None:
            session.close()


class DatabaseSource:
    """A database that another process may be writing, read on a daemon thread.

    Shows the latest run of every program in it, and follows the last of them; when a newer run begins, or another file
    takes the place of this one, starts anew. The inbox is bounded by making the reader wait, not by dropping: what is
    not read yet is still in the file.
    """

    mode = Mode.BROWSE
    capabilities: frozenset[str] = frozenset()
    dropped = 0

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.title = path.name
        self.database = str(path)
        self.locate: Callable[[], Path] | None = lambda: path
        self._path = path
        self._clock = clock
        self._closing = threading.Event()
        self._inbox: deque[Event] = deque()
        self._frozen = self._replaced = self._gone = False
        self._last_at: float | None = None
        self._thread = threading.Thread(target=self._read, name="emmy-follow", daemon=True)
        self._thread.start()

    @property
    def badges(self) -> tuple[str, ...]:
        """The file's state in words; a run that neither ends nor writes for SILENT_S has presumably crashed."""
        badges = []
        if self._frozen:
            badges.append("FROZEN COPY")
        if self._gone:
            badges.append("FILE GONE")
        elif self._replaced:
            badges.append("FILE REPLACED")
        silent = self._clock() - self._last_at if self._last_at is not None else 0.0
        if silent > SILENT_S and not self._frozen:
            badges.append(f"WRITER SILENT {silent_words(silent)}")
        return tuple(badges)

    def _read(self) -> None:
        try:
            while not self._closing.is_set():
                self._read_file()
                self._closing.wait(NEW_RUN_S)
        except StoreError as error:
            self._inbox.append(_failed(error))
        except Exception as error:
            LOG.exception("the database can't be followed")
            self._inbox.append(_failed(error))

    def _read_file(self) -> None:
        """Read until another file stands under the name; returns at once while there is none."""
        identity = file_identity(self._path)
        self._gone = identity is None
        if self._gone and self._replaced:
            return
        with Store.open(self._path, read_only=True) as store:
            self._frozen = store.frozen

            def over() -> bool:
                return self._closing.is_set() or file_identity(self._path) != identity

            for event in self._events(store, over):
                while len(self._inbox) >= INBOX_LIMIT and not self._closing.wait(POLL_S):
                    pass
                if self._closing.is_set():
                    return
                self._note(event)
                self._inbox.append(event)
        if not self._closing.is_set():
            self._replaced, self._last_at = True, None
            self._inbox.append(Anew(at=self._clock()))

    def _note(self, event: Event) -> None:
        """Keep when the followed run said something last; None once it has ended."""
        if isinstance(event, StateChanged) and event.state in _ENDED:
            self._last_at = None
        elif isinstance(event, RunStarted):
            self._last_at = event.at
        elif self._last_at is not None:
            self._last_at = max(self._last_at, event.at)

    def _events(self, store: Store, over: Callable[[], bool]) -> Iterator[Event]:
        shown: str | None = None
        while not over():
            runs = latest_runs(store)
            if runs and runs[-1].id != shown:
                if shown is not None:
                    yield Anew(at=time.time())
                shown = runs[-1].id
                for run in runs[:-1]:
                    yield from store.events_of(run.id)
                yield from store.follow(shown, poll_s=POLL_S, stop=over)
            self._closing.wait(NEW_RUN_S)

    def drain(self, limit: int) -> list[Event]:
        events: list[Event] = []
        while self._inbox and len(events) < limit:
            events.append(self._inbox.popleft())
        return events

    def start(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def stop(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None:
        self._closing.set()
        self._thread.join(timeout=1.0)


def file_identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one under the same name; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def silent_words(seconds: float) -> str:
    """How long nothing was heard: 11m, 3h, 2d."""
    if seconds < 3600:
        return f"{seconds / 60:.0f}m"
    return f"{seconds / 3600:.0f}h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f}d"


def latest_runs(store: Store) -> list[StoredRun]:
    """The latest run of each program on each kind of GPU, the newest last."""
    latest: dict[tuple[str, str], StoredRun] = {}
    for run in store.runs():
        latest.pop((run.target, run.context_key), None)
        latest[(run.target, run.context_key)] = run
    return list(latest.values())


def count_programs(store: Store) -> int:
    """How many programs a database shows."""
    return len(latest_runs(store))


def recorded_events(path: Path) -> Iterator[Event]:
    """Everything that a database says so far, without waiting for more. Raises StoreError."""
    with Store.open(path, read_only=True) as store:
        for run in latest_runs(store):
            yield from store.events_of(run.id)
