"""Questions to the database, answered on a thread of their own, so that no key press waits for a disk.

Each topic has one question: a newer one replaces what still waits, as a person who types on has lost interest in
what was typed before. Answers come back on the screen's thread. Reads use one reader that stays open; a write opens
the database for writing, writes, and closes it again, so that no lock is held while a person looks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from emmy_tui.database_source import file_identity
from engine.store import Store, StoreError

LOG = logging.getLogger("emmy_tui")

T = TypeVar("T")
Locate = Callable[[], Path]
NO_DATABASE = "there is no database behind what is shown"


@dataclass(frozen=True, slots=True)
class _Job:
    question: Callable[[Store], Any]
    then: Callable[[Any], None]
    failed: Callable[[str], None]
    writes: bool = False


class Desk:
    """`deliver` calls a function on the screen's thread. `connect` says which database is meant from now on."""

    def __init__(self, deliver: Callable[[Callable[[], None]], object]) -> None:
        self._deliver = deliver
        self._locate: Locate | None = None
        self._generation = 0
        self._waiting: dict[str, _Job] = {}
        self._open = 0
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._store: Store | None = None
        self._file: tuple[int, int] | None = None
        self._of = -1

    @property
    def busy(self) -> bool:
        """Whether an answer is on its way."""
        return self._open > 0

    def connect(self, locate: Locate | None) -> None:
        """`locate` may take its time and runs on the desk's thread; None: there is no database."""
        with self._wake:
            self._locate = locate
            self._generation += 1

    def ask(
        self, topic: str, question: Callable[[Store], T], then: Callable[[T], None], failed: Callable[[str], None]
    ) -> None:
        """Put a question; `then` gets the answer, or `failed` one sentence."""
        self._put(topic, _Job(question, then, failed))

    def write(self, act: Callable[[Store], T], then: Callable[[T], None], failed: Callable[[str], None]) -> None:
        """Write through a writer that is open for this act only."""
        self._put(f"write {self._open} {id(act)}", _Job(act, then, failed, writes=True))

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

    def _put(self, topic: str, job: _Job) -> None:
        with self._wake:
            if self._closed:
                return
            if self._waiting.pop(topic, None) is None:
                self._open += 1
            self._waiting[topic] = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="emmy-desk", daemon=True)
                self._thread.start()
            self._wake.notify()

    def close(self) -> None:
        with self._wake:
            self._closed = True
            self._waiting.clear()
            self._wake.notify()

    def _work(self) -> None:
        while True:
            with self._wake:
                while not self._waiting and not self._closed:
                    self._wake.wait()
                if self._closed:
                    break
                job = self._waiting.pop(next(iter(self._waiting)))
            answer, sentence = self._answer(job)
            self._deliver(lambda job=job, answer=answer, sentence=sentence: self._hand_over(job, answer, sentence))  # type: ignore[misc]
        self._drop_reader()

    def _hand_over(self, job: _Job, answer: object, sentence: str | None) -> None:
        with self._wake:
            self._open -= 1
        if self._closed:
            return
        if sentence is None:
            job.then(answer)
        else:
            job.failed(sentence)

    def _answer(self, job: _Job) -> tuple[object, str | None]:
        try:
            with self._wake:
                locate, generation = self._locate, self._generation
            if locate is None:
                return None, NO_DATABASE
            if job.writes:
                with Store.open(locate(), create=False) as writer:
                    answer = job.question(writer)
                if self._store is not None and self._store.frozen:
                    self._drop_reader()  # it can't see what was just written
                return answer, None
            return job.question(self._reader(locate, generation)), None
        except (StoreError, OSError) as error:
            return None, str(error)
        except Exception as error:
            LOG.exception("a question to the database failed")
            return None, f"internal error: {type(error).__name__}: {error}"

    def _reader(self, locate: Locate, generation: int) -> Store:
        """The open reader, or a new one where another file has taken its place."""
        if self._store is not None and self._of == generation and self._file == file_identity(self._store.path):
            return self._store
        self._drop_reader()
        path = locate()
        self._file, self._of = file_identity(path), generation
        self._store = Store.open(path, read_only=True)
        return self._store

    def _drop_reader(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
