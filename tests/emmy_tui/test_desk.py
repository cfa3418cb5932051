"""Questions are answered on another thread, the newest of each topic; writes open and close their own writer."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from emmy_tui.desk import NO_DATABASE, Desk
from engine.store import Store
from tests.emmy_tui.looking import rows, running, screen_text
from tests.emmy_tui.measured import fill, matmul, over, press, settled


class Here:
    """Delivers on the test's thread, when it is asked to."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []
        self.warned: list[str] = []
        self.desk = Desk(self.calls.append, self.warned.append)
        self.answers: list[object] = []
        self.sentences: list[str] = []

    def ask(self, topic: str, question: Callable[[Store], object]) -> None:
        self.desk.ask(topic, question, self.answers.append, self.sentences.append)

    def wait(self) -> None:
        self.until(lambda: not self.desk.busy)

    def until(self, condition: Callable[[], bool]) -> None:
        ends = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < ends
            while self.calls:
                self.calls.pop(0)()
            time.sleep(0.002)


@pytest.fixture
def here() -> Iterator[Here]:
    found = Here()
    yield found
    found.desk.close()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db", rows=8)


def test_an_answer_comes_back_from_another_thread(here: Here, database: Path) -> None:
    here.desk.connect(lambda: database)
    here.ask("kernels", lambda store: (threading.current_thread().name, len(store.kernels())))
    assert here.answers == []
    here.wait()
    assert here.answers == [("emmy-desk", 2)]


def test_the_newest_question_of_a_topic_is_the_one_answered(here: Here, database: Path) -> None:
    here.desk.connect(lambda: database)
    hold = threading.Event()
    here.ask("slow", lambda store: hold.wait(5))
    for number in range(5):
        here.ask("topic", lambda store, number=number: number)
    hold.set()
    here.wait()
    assert here.answers[0] is True
    assert here.answers[-1] == 4
    assert len(here.answers) == 2


def test_failures_are_sentences(here: Here, tmp_path: Path) -> None:
    here.ask("nothing", lambda store: None)
    here.wait()
    here.desk.connect(lambda: tmp_path / "missing.db")
    here.ask("missing", lambda store: None)
    here.wait()
    here.desk.connect(lambda: fill(tmp_path / "tune.db", rows=2))
    here.ask("bug", lambda store: 1 / 0)
    here.wait()
    assert here.answers == []
    assert here.sentences[0] == NO_DATABASE
    assert "there is no database at" in here.sentences[1]
    assert here.sentences[2].startswith("internal error: ZeroDivisionError")


def test_a_write_closes_its_writer_and_the_reader_sees_it(here: Here, database: Path) -> None:
    here.desk.connect(lambda: database)
    key = matmul().key
    here.ask("pins", lambda store: len(store.pins()))
    here.wait()
    opened: list[Store] = []

    def act(store: Store) -> None:
        opened.append(store)
        schedule = store.schedules(key, store.kernel_contexts(key)[0][0])[0]
        store.record_pin(key, schedule, store.kernel_contexts(key)[0][0], author="ana")

    here.desk.write(act, here.answers.append, here.sentences.append, what="a pin")
    here.wait()
    here.ask("pins again", lambda store: len(store.pins()))
    here.wait()
    assert here.answers == [0, None, 1]
    with pytest.raises(Exception, match=r"(?i)closed"):
        opened[0].pins()


def test_a_replaced_file_is_opened_again(here: Here, database: Path, tmp_path: Path) -> None:
    here.desk.connect(lambda: database)
    here.ask("rows", lambda store: len(store.variants()))
    here.wait()
    fill(tmp_path / "other.db", rows=3).replace(database)
    for suffix in ("-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    here.ask("rows", lambda store: sum(found.ok + found.failed for found in store.variants()))
    here.wait()
    assert here.answers[-1] == 5


@contextmanager
def locked_elsewhere(database: Path) -> Iterator[None]:
    """Another process has the write lock."""
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN EXCLUSIVE')\n"
        "print('locked', flush=True); sys.stdin.read(); c.execute('ROLLBACK')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdout.readline()
        yield
        holder.stdin.close()


def forbid(store: Store) -> object:
    return store.forbid({"NUM_WARPS": 4}, family="contraction", author="ana").id


def test_a_write_waits_for_a_lock_aloud_and_holds_up_no_reading(here: Here, database: Path) -> None:
    here.desk.connect(lambda: database)
    with locked_elsewhere(database):
        here.desk.write(forbid, here.answers.append, here.sentences.append, what="a corner")
        here.ask("kernels", lambda store: len(store.kernels()))
        here.until(lambda: bool(here.answers and here.warned))
        assert here.answers == [2]
        assert here.warned == ["tune.db is locked by another process: waiting for it, nothing is stored yet"]
        assert here.desk.busy
        assert here.desk.waiting == here.warned[0]
        assert here.desk.unwritten == ("a corner",)
    here.wait()
    assert (here.answers, here.sentences) == ([2, 1], [])
    assert not here.desk.waiting
    assert not here.desk.unwritten
    assert here.desk.refused == 0


def test_what_waits_for_a_lock_at_the_end_is_named(here: Here, database: Path) -> None:
    here.desk.connect(lambda: database)
    with locked_elsewhere(database):
        here.desk.write(forbid, here.answers.append, here.sentences.append, what="a corner")
        here.desk.write(forbid, here.answers.append, here.sentences.append, what="another")
        assert here.desk.close(0.05) == ("a corner", "another")


def test_what_was_let_go_is_not_stored_once_the_lock_is_free(here: Here, database: Path) -> None:
    here.desk.connect(lambda: database)
    with locked_elsewhere(database):
        here.desk.write(forbid, here.answers.append, here.sentences.append, what="a corner")
        here.until(lambda: bool(here.desk.waiting))
        assert here.desk.close() == ("a corner",)
    here.until(lambda: not here.desk.unwritten)
    with Store.open(database, read_only=True) as store:
        assert not store.forbidden()


def test_an_act_that_has_the_lock_at_the_end_is_stored_and_not_named(here: Here, database: Path) -> None:
    here.desk.connect(lambda: database)
    writes, goes_on = threading.Event(), threading.Event()

    def slowly(store: Store) -> object:
        with store._connection.transaction():
            writes.set()
            goes_on.wait(5)
        return forbid(store)

    here.desk.write(slowly, here.answers.append, here.sentences.append, what="a corner")
    here.desk.write(forbid, here.answers.append, here.sentences.append, what="another")
    assert writes.wait(5)
    threading.Timer(0.1, goes_on.set).start()
    assert here.desk.close() == ("another",)
    here.until(lambda: len(here.desk.unwritten) == 1)
    with Store.open(database, read_only=True) as store:
        assert len(store.forbidden()) == 1


def test_what_needs_a_moment_at_the_end_has_it(here: Here, database: Path) -> None:
    here.desk.connect(lambda: database)
    here.desk.write(forbid, here.answers.append, here.sentences.append, what="a corner")
    assert here.desk.close(10.0) == ()
    with Store.open(database, read_only=True) as store:
        assert len(store.forbidden()) == 1


def test_a_lock_that_stays_ends_in_one_sentence(here: Here, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.store.connection.BUSY_S", 0.2)
    monkeypatch.setattr("engine.store.connection.WORD_S", 0.1)
    here.desk.connect(lambda: database)
    kept: list[str] = []
    with locked_elsewhere(database):
        here.desk.write(forbid, here.answers.append, here.sentences.append, lambda: kept.append("again"), what="")
        here.wait()
    assert here.answers == []
    (sentence,) = here.sentences
    assert "stayed locked by another process" in sentence
    assert "nothing was stored" in sentence
    assert kept == ["again"]
    here.ask("corners", lambda store: len(store.forbidden()))
    here.wait()
    assert here.answers == [0]


def test_writes_keep_their_order(here: Here, database: Path) -> None:
    here.desk.connect(lambda: database)
    for number in range(8):
        here.desk.write(
            lambda store, number=number: store.forbid({"NUM_WARPS": number}, family="f", author="ana").id,
            here.answers.append,
            here.sentences.append,
            what=f"corner {number}",
        )
    assert here.desk.unwritten[-1] == "corner 7"
    here.wait()
    assert here.desk.unwritten == ()
    assert here.answers == list(range(1, 9))


def test_a_list_is_asked_for_again_once_a_damaged_file_was_restored(here: Here, database: Path) -> None:
    with closing(sqlite3.connect(database)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = database.read_bytes()
    here.desk.connect(lambda: database)
    database.write_bytes(b"no database at all " * 400)
    here.desk.ask("kernels", lambda store: len(store.kernels()), here.answers.append, here.sentences.append, again=True)
    here.ask("other", lambda store: len(store.kernels()))
    here.wait()
    assert (here.answers, len(here.sentences)) == ([], 2)
    database.write_bytes(whole)
    here.until(lambda: bool(here.answers))
    here.wait()
    assert here.answers == [2]
    assert len(here.sentences) == 2
    assert not here.desk.busy


def test_a_list_of_another_database_is_not_asked_for_again(here: Here, database: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    here.desk.connect(lambda: missing)
    here.desk.ask("kernels", lambda store: len(store.kernels()), here.answers.append, here.sentences.append, again=True)
    here.wait()
    here.desk.connect(lambda: database)
    missing.write_bytes(database.read_bytes())
    here.until(lambda: not here.desk._unanswered)
    here.wait()
    assert here.answers == []
    here.ask("kernels", lambda store: len(store.kernels()))
    here.wait()
    assert here.answers == [2]


async def test_an_answer_that_was_left_opens_nothing(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=3))
    async with running(app) as pilot:
        held, go_on = threading.Event(), threading.Event()

        def slowly(store: Store) -> None:
            held.set()
            go_on.wait(10)

        for leaving in (("escape",), ("question_mark", "escape"), ("2", "1"), ("question_mark",)):
            held.clear()
            go_on.clear()
            app.desk.ask("slow", slowly, lambda answer: None, lambda sentence: None)
            await asyncio.to_thread(held.wait, 10)
            await pilot.press("A")
            await pilot.press(*leaving)
            shown = len(app.screen_stack)
            go_on.set()
            await settled(app, pilot)
            assert len(app.screen_stack) == shown, leaving
        await press(app, pilot, "escape", "A")
        assert "What was asked" in screen_text(app)
        assert "esc Close" in rows(app)[-1]
        await press(app, pilot, "escape")
        assert "q Quit" in rows(app)[-1]
