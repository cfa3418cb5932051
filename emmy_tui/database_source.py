"""A database that another process may be writing, as a source: followed on a thread, with what became of its file."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from emmy_tui.known import Known, KnownKernels, Rows
from emmy_tui.refusal import TO_LOOK
from emmy_tui.run_state import GONE_S, Onward, heard_at, silent_words
from emmy_tui.source import ENDED, Again, Anew, Mode
from emmy_tui.stopped import stopped_words, stopped_writer
from engine.events import Event, Logged, RunStarted, RunState, StateChanged
from engine.store import LeftOut, Store, StoredRun, StoreError, check_length, unwritable_because
from engine.store.database_file import check_file
from engine.store.guest import Seen, seen_now

LOG = logging.getLogger("emmy_tui")

INBOX_LIMIT = 50_000
POLL_S = 0.2
NEW_RUN_S = 1.0
SILENT_S = 60.0
"""A run that isn't paused writes how its devices are every second or so: a minute without a word is worth a badge."""
STOPPED_S = 3.0
"""Without a word for so long, the writer may have been stopped by a signal; how often that is looked at, too."""
RETRY_S = (1.0, 2.0, 4.0, 8.0)
"""Waits between tries to read what can't be read, the last one repeated; a change of the file ends a wait."""


class DatabaseSource:
    """A database that another process may be writing, read on a daemon thread.

    Shows the latest run of every program in it, and follows the last of them; when a newer run begins, whether or not
    this one has ended, or another file takes the place of this one, starts anew. What was read stays where the file
    vanishes or can't be read: `trouble` says why, and reading goes on as soon as it can. The inbox is bounded by making
    the reader wait, not by dropping: what is not read yet is still in the file.
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
        self._replaced = self._gone = self._was_gone = self._told = False
        self._first: tuple[int, int] | None = None
        self._first_runs: frozenset[str] = frozenset()
        """The file that was read first, and the runs that it held: a number of a file is given out again."""
        self.trouble = ""
        self._onward = Onward()
        self._last_at: float | None = None
        """When the followed run was heard last, as `_onward` has it."""
        self._left_out: LeftOut | None = None
        self._whole: Signature = ()
        """What the file was like when it was looked at, and was a database as long as it says."""
        self._stopped: int | None = None
        self._looked = 0.0
        self._read_up = False
        self._unshown = 0
        self._thread = threading.Thread(target=self._read, name="emmy-follow", daemon=True)
        self._thread.start()

    @property
    def badges(self) -> tuple[str, ...]:
        """The file's state in words, with how long a run was silent that neither ended nor is paused.

        What a run said last is known once everything was read.
        """
        badges = []
        if self._frozen:
            badges.append(f"NOT UPDATING ({self._frozen})")
        if self._gone:
            badges.append("FILE GONE")
        elif self.trouble:
            badges.append("CAN'T READ")
        elif self._replaced:
            badges.append("FILE REPLACED")
        silent, stopped = self._silent_s, self._stopped
        if silent is not None and stopped is not None:
            badges.append(stopped_words("WRITER", stopped))
        elif silent is not None and silent > SILENT_S:
            badges.append(f"WRITER SILENT {silent_words(silent)}")
        return (*badges, *self._missing_badges())

    def _missing_badges(self) -> tuple[str, ...]:
        """What holds as long as rows are missing from what is shown; the log tells which."""
        few = self._left_out.words if self._left_out is not None else ""
        return (f"{few.upper()} LEFT OUT",) if few else ()

    @property
    def _silent_s(self) -> float | None:
        """Seconds since the followed run said something; None while it owes no word, before everything was read, and in
        a frozen copy, which can't tell: its run may go on elsewhere."""
        last_at = self._last_at  # the reader's thread sets it
        if last_at is None or self.reading or self._frozen:
            return None
        return max(0.0, self._onward.at(self._clock()) - last_at)

    @property
    def heard_s(self) -> float | None:
        """Up to SILENT_S: from then on nobody knows whether the writer is still there. None for one that is stopped."""
        silent = self._silent_s
        return silent if silent is not None and silent <= SILENT_S and self._stopped is None else None

    @property
    def lost(self) -> bool:
        silent = self._silent_s
        return silent is not None and silent > GONE_S and self._stopped is None

    def _look_at_writer(self) -> None:
        """Whether a writer that owes a word was stopped by a signal; one of another machine is only silent."""
        silent, now = self._silent_s, time.monotonic()
        if silent is None or silent < STOPPED_S:
            self._stopped = None
        elif now - self._looked > STOPPED_S:
            self._looked, self._stopped = now, stopped_writer(self._path)

    @property
    def unwritable(self) -> str:
        """Looked at each time, since whoever reads this may have made the file writable."""
        return unwritable_because(self._path)

    @property
    def reading(self) -> bool:
        """Whether what the file holds already is still on its way; what happens next comes as it happens."""
        return not self._read_up or (self._unshown > 0 and len(self._inbox) > 0)

    def _read(self) -> None:
        tries = 0
        while not self._closing.is_set():
            seen, began = file_signature(self._path), time.monotonic()
            try:
                self._read_file()
                tries = 0
                self._closing.wait(NEW_RUN_S)
                continue
            except StoreError as error:
                sentence = error.named_by(TO_LOOK)
            except Exception as error:
                LOG.exception("the database can't be followed")
                sentence = f"internal error: {type(error).__name__}: {error}"
            self._up_to_now()
            if tries or file_signature(self._path) == seen:  # else it was written meanwhile, and is looked at once more
                self.trouble = sentence
                least = min(RETRY_S[-1], max(RETRY_S[0], 4 * (time.monotonic() - began)))
                self._wait_for_change(seen, least, RETRY_S[min(tries, len(RETRY_S) - 1)])
            tries += 1

    def _wait_for_change(self, seen: Signature, least_s: float, most_s: float) -> None:
        """Until the file differs from what was seen."""
        self._closing.wait(least_s)
        ends = time.monotonic() + most_s - least_s
        while file_signature(self._path) == seen and time.monotonic() < ends:
            if self._closing.wait(POLL_S):
                return

    def _read_file(self) -> None:
        """Read until another file stands under the name; returns at once while there is none."""
        identity = file_identity(self._path)
        self._gone = is_gone(self._path)
        if self._gone and self._told:
            self.trouble, self._was_gone = "", True
            self._up_to_now()
            return
        with Store.open(self._path, read_only=True) as store:
            self._frozen = store.frozen_because

            def over() -> bool:
                if self._closing.is_set() or store.thaws or file_identity(self._path) != identity:
                    return True
                self._check_file()
                return False

            if self.trouble:
                self._check_whole(store)
            self._begin_anew()
            self.trouble = ""
            self._recognize(store, identity)
            self._left_out = LeftOut(store, self._warn)
            for event in self._events(store, over):
                self._note(event)
                self._put(event)
                self._told = True
                if self._closing.is_set():
                    return

    def _put(self, *events: Event) -> None:
        """Every event goes to the inbox here: where that is full, the reader waits. Once closed, nobody takes any."""
        for event in events:
            while len(self._inbox) >= INBOX_LIMIT and not self._closing.wait(POLL_S):
                pass
            if not self._closing.is_set():
                self._inbox.append(event)

    def _check_file(self) -> None:
        """Raise the StoreError of a file that was spoilt in its place: SQLite tells nobody who has read its pages."""
        seen = file_signature(self._path)
        if seen != self._whole:
            check_file(self._path, read_only=True, create=False)
            check_length(self._path)
            self._whole = seen

    def _recognize(self, store: Store, identity: tuple[int, int] | None) -> None:
        """Whether this is the file that was read first, which may have been away, or another one in its place."""
        runs = frozenset(run.id for run in store.runs())
        same = self._first in (None, identity) and self._first_runs <= runs
        self._replaced = not same
        if same:
            if self._was_gone:
                text = f"{self._path.name} is there again: it is the same file"
                self._put(Logged(at=self._clock(), level="info", text=text))
            self._first, self._first_runs = identity, runs
        self._was_gone = False

    def _check_whole(self, store: Store) -> None:
        """Read everything once before what is shown is let go: a screen that starts anew at every try is of no use."""
        for run in latest_runs(store):
            for _ in store.events_of(run.id):
                if self._closing.is_set():
                    return

    def _begin_anew(self) -> None:
        if self._told:
            self._last_at, self._read_up = None, False
            self._put(Anew(at=self._clock()))

    def _warn(self, text: str) -> None:
        LOG.warning("%s: %s", self._path, text)
        self._put(Logged(at=self._clock(), level="warning", text=text))

    def _note(self, event: Event) -> None:
        """Keep when the followed run was heard last; None while it owes no word: paused, or ended."""
        if isinstance(event, Known | Rows):
            return  # the database's word, not the run's
        now = self._clock()
        at = heard_at(event.at, now, first_look=not self._read_up) + (self._onward.at(now) - now)
        if isinstance(event, StateChanged) and event.state in (*ENDED, RunState.PAUSED):
            self._last_at = None
        elif isinstance(event, RunStarted | StateChanged) or self._last_at is not None:
            self._last_at = at

    def _up_to_now(self) -> None:
        """Everything that was written up to now is in the inbox, and at its end what of it can't be read."""
        if self._left_out is not None:
            self._left_out.tell()
        if not self._read_up:
            self._unshown = len(self._inbox)
            self._read_up = True

    def _events(self, store: Store, over: Callable[[], bool]) -> Iterator[Event]:
        shown: str | None = None
        kernels = KnownKernels()
        while not over():
            store.forget_bad_rows("run")
            runs = latest_runs(store)
            if runs and runs[-1].id != shown:
                if shown is not None:
                    self._read_up = False
                    store.forget_bad_rows()
                    yield Anew(at=time.time())
                shown = runs[-1].id
                kernels = KnownKernels()
                for run in runs[:-1]:
                    yield from kernels.noted(store.events_of(run.id), run.context_key)
                yield from self._followed(store, runs[-1], over, kernels)
            yield from kernels.news(store)
            self._up_to_now()
            self._closing.wait(NEW_RUN_S)

    def _followed(
        self, store: Store, run: StoredRun, over: Callable[[], bool], kernels: KnownKernels
    ) -> Iterator[Event]:
        """A run's events; when its reader looks for more the second time, all that was written is in the inbox, and
        what the database knows beside it."""
        self._read_up, looks = False, 0
        newer = self._newer_than(store, run.id)

        def stop() -> bool:
            nonlocal looks
            looks += 1
            if looks > 1:
                for event in kernels.events(store) if looks == 2 else kernels.news(store):
                    self._put(event)
                self._up_to_now()
            self._look_at_writer()
            return over() or newer()

        yield from kernels.noted(store.follow(run.id, poll_s=POLL_S, stop=stop), run.context_key)
        if looks < 2:
            yield from kernels.events(store)

    def _newer_than(self, store: Store, run: str) -> Callable[[], bool]:
        """Whether another run has begun since, asked every NEW_RUN_S: a run whose process was killed never ends."""
        asked = time.monotonic()

        def newer() -> bool:
            nonlocal asked
            if time.monotonic() - asked < NEW_RUN_S:
                return False
            asked = time.monotonic()
            latest = store.latest_run()
            return latest is not None and latest.id != run

        return newer

    def drain(self, limit: int) -> list[Event]:
        events: list[Event] = []
        while self._inbox and len(events) < limit:
            events.append(self._inbox.popleft())
        self._unshown = max(0, self._unshown - len(events))
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


def is_gone(path: Path) -> bool:
    """Whether nothing stands there, as far as that can be told: a folder that may not be entered hides what does."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


Signature = Seen


def file_signature(path: Path) -> Signature:
    """What differs once the file or its write-ahead log was written, made or taken away; no file is opened for it."""
    return seen_now(path)


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
        kernels = KnownKernels()
        for run in latest_runs(store):
            yield from kernels.noted(store.events_of(run.id), run.context_key)
        yield from kernels.events(store)
