"""Questions to the database, answered on a thread of their own, so that no key press waits for a disk.

Each topic has one question: a newer one replaces what still waits, as a person who types on has lost interest in
what was typed before. Answers come back on the screen's thread. Reads use one reader that stays open; a write opens
the database for writing, writes, and closes it again, so that no lock is held while a person looks. Writes have a
thread of their own, in their order: one that waits for another process's lock holds up no reading.

A list's question that the file couldn't answer is put again once the file was written: a database that was damaged and
is restored shows its rows by itself.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from emmy_tui.database_source import Signature, file_identity, file_signature
from engine.store import LeftOut, Store, StoreError, StoreLocked
from engine.store.connection import BUSY_S

LOG = logging.getLogger("emmy_tui")

T = TypeVar("T")
Locate = Callable[[], Path]
LOOK_S = 1.0
"""How often a file that couldn't answer is looked at."""
TURN_S = 0.002
"""For how long a thread that computes keeps the interpreter from the screen's thread. A thread that reads rows lets go
and takes again at each of them, and each time the wait for a turn starts anew: at Python's 5 ms it goes on for 100."""
STORING_S = 2.0
"""For how long the end waits for an act that has the database's lock: it is stored or it isn't, and is told so."""
NO_DATABASE = "there is no database behind what is shown"


@dataclass(frozen=True, slots=True)
class _Job:
    question: Callable[[Store], Any]
    then: Callable[[Any], None]
    failed: Callable[[str], None]
    writes: bool = False
    again: bool = False
    what: str = ""
    locked: Callable[[], None] = lambda: None


@dataclass(slots=True)
class _Line:
    """What waits for one thread, by topic, oldest first."""

    name: str
    jobs: dict[str, _Job] = field(default_factory=dict)
    thread: threading.Thread | None = None


class Desk:
    """`deliver` calls a function on the screen's thread; `warn` gets a sentence there about an act that still waits,
    or about a row that can't be read.

    `connect` says which database is meant from now on.
    """

    def __init__(
        self, deliver: Callable[[Callable[[], None]], object], warn: Callable[[str], None] = lambda sentence: None
    ) -> None:
        self._deliver = deliver
        self._warn = warn
        self._locate: Locate | None = None
        self._generation = 0
        self._reads, self._writes = _Line("emmy-desk"), _Line("emmy-desk-writes")
        self._open = self._written = self._left = 0
        self._prompts_from = -1
        self.waiting = ""
        """What is to be said as long as an act waits for another process's lock; "" while none does."""
        self.refused = 0
        """Acts that could not be stored."""
        self.patient = False
        """Whether an act waits for another process's lock for as long as it stays."""
        self._unwritten: list[str] = []
        self._storing = self._stored = False
        """Whether the oldest of them has the lock, and whether it is committed."""
        self._wake = threading.Condition()
        self._closed = False
        self._store: Store | None = None
        self._left_out: LeftOut | None = None
        self._stale = False
        self._file: tuple[int, int] | None = None
        self._of = -1
        self._path: Path | None = None
        self._seen: Signature = ()
        self._unanswered: dict[str, tuple[_Job, Signature, int]] = {}

    @property
    def busy(self) -> bool:
        """Whether an answer is on its way."""
        return self._open > 0

    @property
    def prompting(self) -> bool:
        """Whether an answer is on its way that opens a line to type in, and that a person still waits for."""
        return self._prompts_from == self._left

    @property
    def unwritten(self) -> tuple[str, ...]:
        """The acts that are not stored yet, in words, oldest first."""
        return tuple(self._unwritten)

    @property
    def badges(self) -> tuple[str, ...]:
        """What holds as long as rows are missing from the answers; the log file tells which."""
        left_out = self._left_out
        return (f"{left_out.words.upper()} LEFT OUT",) if left_out is not None and left_out.words else ()

    def connect(self, locate: Locate | None) -> None:
        """`locate` may take its time and runs on the desk's thread; None: there is no database."""
        with self._wake:
            self._locate = locate
            self._generation += 1

    def ask(
        self,
        topic: str,
        question: Callable[[Store], T],
        then: Callable[[T], None],
        failed: Callable[[str], None],
        *,
        again: bool = False,
        opens: bool = False,
        typed: bool = False,
    ) -> None:
        """Put a question; `then` gets the answer, or `failed` one sentence. With `again` it is put again where the
        database couldn't be read, as soon as the file was written. With `opens` the answer opens something over the
        screen: it is let go where a person has turned to something else by then. What it opens is a line to type in
        where the question is `typed`."""
        if opens:
            then, failed = self._unless_left(then), self._unless_left(failed)
        if typed:
            self._prompts_from = self._left
        self._put(self._reads, topic, _Job(question, then, failed, again=again))

    def leave(self) -> None:
        """A person has turned to something else: what was asked in order to be opened isn't wanted any more."""
        self._left += 1

    def _unless_left(self, act: Callable[[T], None]) -> Callable[[T], None]:
        left = self._left

        def act_unless_left(answer: T) -> None:
            if self._left == left:
                self._prompts_from = -1
                act(answer)

        return act_unless_left

    def write(
        self,
        act: Callable[[Store], T],
        then: Callable[[T], None],
        failed: Callable[[str], None],
        locked: Callable[[], None] = lambda: None,
        *,
        what: str,
    ) -> None:
        """Write through a writer that is open for this act only, `what` in words. `locked` comes before `failed` where
        a lock of another process kept it from being written, so that it can be done again."""
        self._written += 1
        job = _Job(act, then, failed, writes=True, what=what, locked=locked)
        if not self._closed:
            self._unwritten.append(what)
        self._put(self._writes, str(self._written), job)

    def aside(self, work: Callable[[], T], then: Callable[[T], None], failed: Callable[[str], None]) -> None:
        """What needs no database and takes long, on a thread of its own. An error's text is for a person."""
        with self._wake:
            if self._closed:
                return
            self._open += 1

        def run() -> None:
            answer, sentence = None, None
            try:
                answer = work()
            except Exception as error:
                LOG.warning("work aside of the screen failed", exc_info=True)
                sentence = str(error) or type(error).__name__
            job = _Job(lambda store: None, then, failed)
            self._deliver(lambda: self._hand_over(job, answer, sentence))

        threading.Thread(target=run, name="emmy-aside", daemon=True).start()

    def _put(self, line: _Line, topic: str, job: _Job) -> None:
        with self._wake:
            if self._closed:
                return
            if line.jobs.pop(topic, None) is None:
                self._open += 1
            line.jobs[topic] = job
            if line is self._reads:
                self._unanswered.pop(topic, None)
            if line.thread is None:
                line.thread = threading.Thread(target=self._work, args=(line,), name=line.name, daemon=True)
                line.thread.start()
            self._wake.notify_all()

    def close(self, patience_s: float = 0.0) -> tuple[str, ...]:
        """End both threads. Acts that are on their way have `patience_s` to be stored; returns those that are not,
        and won't be."""
        with self._wake:
            self._wake.wait_for(lambda: not self._unwritten, patience_s)
            self._closed = True
            self._reads.jobs.clear()
            self._writes.jobs.clear()
            self._wake.notify_all()
            self._wake.wait_for(lambda: not self._storing, STORING_S)
            return self.unwritten[self._stored :]

    def _work(self, line: _Line) -> None:
        while True:
            with self._wake:
                while not line.jobs and not self._closed:
                    looks = line is self._reads and bool(self._unanswered)
                    self._wake.wait(LOOK_S if looks else None)
                    if looks:
                        self._put_again()
                if self._closed:
                    break
                topic = next(iter(line.jobs))
                job = line.jobs.pop(topic)
            answer, sentence = self._answer(job, topic)
            if job.writes:
                if sentence is not None:
                    LOG.warning("not stored: %s: %s", job.what, sentence)
                self._written_or_not(job, sentence)
            self._deliver(lambda job=job, answer=answer, sentence=sentence: self._hand_over(job, answer, sentence))  # type: ignore[misc]
        if line is self._reads:
            self._drop_reader()

    def _written_or_not(self, job: _Job, sentence: str | None) -> None:
        with self._wake:
            self._unwritten.remove(job.what)
            self._storing = self._stored = False
            self.refused += sentence is not None
            if sentence is None or not self._unwritten:
                self.waiting = ""
            self._wake.notify_all()

    def _hand_over(self, job: _Job, answer: object, sentence: str | None) -> None:
        with self._wake:
            self._open -= 1
        if self._closed:
            return
        if sentence is None:
            job.then(answer)
        else:
            job.failed(sentence)

    def _put_again(self) -> None:
        """Questions whose file was written since it couldn't answer; those to another database are let go."""
        for topic, (job, seen, generation) in list(self._unanswered.items()):
            written = self._path is not None and file_signature(self._path) != seen
            if written or generation != self._generation:
                del self._unanswered[topic]
            if written and generation == self._generation:
                self._open += 1
                self._reads.jobs[topic] = job

    def _answer(self, job: _Job, topic: str) -> tuple[object, str | None]:
        try:
            with self._wake:
                locate, generation = self._locate, self._generation
            if locate is None:
                return None, NO_DATABASE
            if job.writes:
                return self._write(job, locate()), None
            answer = job.question(self._reader(locate, generation))
            if self._left_out is not None:
                self._left_out.tell()
            return answer, None
        except (StoreError, OSError) as error:
            if not job.writes:
                self._drop_reader()  # what it keeps in memory may be of the file as it was
                with self._wake:
                    if job.again and topic not in self._reads.jobs:
                        self._unanswered[topic] = (job, self._seen, generation)
            return None, str(error)
        except Exception as error:
            LOG.exception("a question to the database failed")
            return None, f"internal error: {type(error).__name__}: {error}"

    def _write(self, job: _Job, path: Path) -> object:
        """Through a writer that says so when another process's lock keeps it, and gives up after BUSY_S, or where it
        is `patient`, not at all. An act of which a part was stored isn't done again."""
        while True:
            try:
                return self._write_once(job, path)
            except StoreLocked as error:
                if self.patient and not (self._closed or error.partly):
                    continue
                self._deliver(job.locked)
                what = "only a part of it was stored" if error.partly else "nothing was stored"
                stayed = f"{path} stayed locked by another process for {BUSY_S:.0f} s"
                raise StoreError(f"{stayed}: {what}; do it again when that has ended") from error

    def _write_once(self, job: _Job, path: Path) -> object:
        def waiting() -> None:
            self.waiting = f"{path.name} is locked by another process: waiting for it, nothing is stored yet"
            self._warn_there(self.waiting)

        with Store.open(path, create=False, waiting=waiting, holding=self._store_unless_closed) as writer:
            answer = job.question(writer)
            with self._wake:
                self._storing, self._stored = False, True
                self._wake.notify_all()
        self._stale = True  # a frozen reader can't see what was just written
        return answer

    def _store_unless_closed(self) -> None:
        """What was told as let go isn't stored afterwards, when the lock is free at last."""
        with self._wake:
            if self._closed and not self._storing:
                raise StoreError("let go")
            self._storing = True

    def _tell_left_out(self, sentence: str) -> None:
        LOG.warning("%s: %s", self._path, sentence)
        self._warn_there(sentence)

    def _warn_there(self, sentence: str) -> None:
        self._deliver(lambda: None if self._closed else self._warn(sentence))

    def _reader(self, locate: Locate, generation: int) -> Store:
        """The open reader, or a new one where another file has taken its place."""
        stale, self._stale = self._stale, False
        if self._store is not None and self._store.frozen and (stale or self._store.thaws):
            self._drop_reader()
        if self._store is not None and self._of == generation and self._file == file_identity(self._store.path):
            self._seen = file_signature(self._store.path)
            return self._store
        self._drop_reader()
        self._path = path = locate()
        self._seen = file_signature(path)
        self._file, self._of = file_identity(path), generation
        self._store = Store.open(path, read_only=True)
        self._left_out = LeftOut(self._store, self._tell_left_out)
        return self._store

    def _drop_reader(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = self._left_out = None
