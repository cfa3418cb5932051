"""A database that another process may be writing, as a source: followed on a thread, with what became of its file."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from emmy_tui.source import ENDED, Again, Anew, Mode, failed
from engine.events import Event, RunStarted, StateChanged
from engine.store import Store, StoredRun, StoreError

LOG = logging.getLogger("emmy_tui")

INBOX_LIMIT = 50_000
POLL_S = 0.2
NEW_RUN_S = 1.0
SILENT_S = 600.0


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
        self._frozen = ""
        self._replaced = self._gone = False
        self._last_at: float | None = None
        self._thread = threading.Thread(target=self._read, name="emmy-follow", daemon=True)
        self._thread.start()

    @property
    def badges(self) -> tuple[str, ...]:
        """The file's state in words; a run that neither ends nor writes for SILENT_S has presumably crashed."""
        badges = []
        if self._frozen:
            badges.append(f"FROZEN COPY ({self._frozen})")
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
            self._inbox.append(failed(error))
        except Exception as error:
            LOG.exception("the database can't be followed")
            self._inbox.append(failed(error))

    def _read_file(self) -> None:
        """Read until another file stands under the name; returns at once while there is none."""
        identity = file_identity(self._path)
        self._gone = identity is None
        if self._gone and self._replaced:
            return
        with Store.open(self._path, read_only=True) as store:
            self._frozen = store.frozen_because

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
        if isinstance(event, StateChanged) and event.state in ENDED:
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

    def skip(self, kernel: str) -> None: ...

    def set_patience(self, kernel: str, patience: int) -> None: ...

    def kill_compile(self, number: int, kernel: str, schedule: str) -> None: ...

    def enqueue(self, wanted: Sequence[Again]) -> None: ...

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
