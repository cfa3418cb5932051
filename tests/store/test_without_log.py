"""A database without a write-ahead log: who looks at it never makes its writer fail, and sees whole transactions."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from engine.store import Store, StoreError, StoreLocked
from engine.store.connection import Connection, open_connection
from engine.store.private_copy import lacks_log

MODES = ("DELETE", "TRUNCATE", "PERSIST")
SPREAD = 300
"""Rows of a transaction, on as many pages: half of them would be seen."""
READERS, READS = 3, 40
LONG_AGO = 1_000_000_000
HALF = "SELECT min(number), max(number) FROM spread"


@pytest.fixture(params=MODES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "tune.db"
    Store.open(path).close()
    with closing(writer_of(path)) as writer:
        writer.execute(f"PRAGMA journal_mode = {request.param}").fetchall()
        writer.execute("CREATE TABLE spread (number INTEGER, filler TEXT)")
        writer.executemany("INSERT INTO spread VALUES (0, ?)", [("x" * 3000,)] * SPREAD)
    return path


def writer_of(path: Path) -> sqlite3.Connection:
    """One that waits for nobody."""
    writer = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    writer.execute("PRAGMA synchronous = OFF")
    return writer


def look(connection: Connection) -> int:
    """The number of the transaction that is seen, which is seen whole."""
    least, most = connection.tuples(HALF)[0]
    assert least == most
    return int(least)


def at_rest(path: Path) -> None:
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
    os.utime(path, (LONG_AGO, LONG_AGO))


class Writing:
    """Writes without a break, but for `breaks`; what it couldn't write is in `errors`."""

    def __init__(self, path: Path, breaks: threading.Event) -> None:
        self.errors: list[str] = []
        self.written = 0
        self._breaks, self._path = breaks, path
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        with closing(writer_of(self._path)) as writer:
            while not self.ends.is_set():
                try:
                    writer.execute("BEGIN IMMEDIATE")
                    writer.execute("UPDATE spread SET number = ?", (self.written + 1,))
                    writer.execute("COMMIT")
                    self.written += 1
                except sqlite3.Error as error:
                    self.errors.append(str(error))
                    writer.rollback()
                if self.written % 20 == 0 and self._breaks.is_set():
                    self.ends.wait(0.1)


@contextmanager
def written(path: Path, *, with_breaks: bool) -> Iterator[Writing]:
    breaks = threading.Event()
    if with_breaks:
        breaks.set()
    writing = Writing(path, breaks)
    writing.thread.start()
    try:
        while writing.written < 2:
            assert writing.thread.is_alive()
        yield writing
    finally:
        writing.ends.set()
        writing.thread.join()


def test_readers_see_whole_transactions_and_their_writer_never_waits(path: Path) -> None:
    seen: list[list[int]] = [[] for _ in range(READERS)]

    def read(mine: list[int]) -> None:
        while len(mine) < READS:
            try:
                with closing(open_connection(path, read_only=True, create=False)) as connection:
                    mine += [look(connection) for _ in range(4)]
            except StoreLocked:
                continue

    with written(path, with_breaks=True) as writing:
        readers = [threading.Thread(target=read, args=(mine,)) for mine in seen]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    assert writing.errors == []
    assert all(len(mine) >= READS and mine == sorted(mine) for mine in seen)


def test_one_that_is_written_without_a_break_is_refused_in_a_sentence(path: Path) -> None:
    with written(path, with_breaks=False) as writing, pytest.raises(StoreError) as refused:
        Store.open(path, read_only=True)
    assert writing.errors == []
    sentence = str(refused.value)
    assert sentence.startswith(f"{path} is written all the time and has no write-ahead log")
    assert "once it is at rest" in sentence
    assert "\n" not in sentence


def test_one_at_rest_is_read_in_its_place_until_it_is_written(path: Path) -> None:
    at_rest(path)
    with closing(open_connection(path, read_only=True, create=False)) as connection:
        assert connection._copy is None
        version = connection.data_version()
        with closing(writer_of(path)) as writer:
            writer.execute("UPDATE spread SET number = 7")
        assert look(connection) == 7
        assert connection._copy is not None
        assert connection.data_version() != version


def test_what_a_killed_writer_left_half_written_is_not_seen_and_stays_as_it_is(path: Path) -> None:
    code = (
        "import os, signal, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "c.execute('PRAGMA cache_size = 5'); c.execute('BEGIN IMMEDIATE'); "
        "c.execute('UPDATE spread SET number = 9'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(path)])
    assert ended.returncode == -signal.SIGKILL
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert b"tune.db-journal" in [name.encode() for name in before]
    with closing(open_connection(path, read_only=True, create=False)) as connection:
        assert look(connection) == 0
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_a_database_with_a_log_is_known_from_one_without(path: Path) -> None:
    assert lacks_log(path)
    with Store.open(path):
        assert not lacks_log(path)
    assert not lacks_log(path)
