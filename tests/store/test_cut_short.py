"""A file that was cut short is named as what it is, also while its log holds a part of it; a file that is being written
is whole."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.store import Store, check_length
from engine.store.cut_short import _log_has_rest
from engine.store.errors import StoreDamaged
from engine.store.guest import log_of

PAGE = 4096


def filled(path: Path, rows: int = 400) -> Path:
    """A database of Emmy that is some hundred pages long."""
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        fill(connection, rows)
    return path


def fill(connection: sqlite3.Connection, rows: int) -> None:
    sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
    connection.execute("CREATE TABLE IF NOT EXISTS filling (text TEXT)")
    connection.execute(sql + "INSERT INTO filling SELECT hex(zeroblob(2000)) FROM n", (rows,))
    connection.commit()


@contextmanager
def writer(path: Path) -> Iterator[sqlite3.Connection]:
    """One whose log is carried over only when it is asked for."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        yield connection


@pytest.mark.parametrize("keeps", [0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_part_of_a_database_is_damaged(tmp_path: Path, keeps: float, *, read_only: bool) -> None:
    path = filled(tmp_path / "tune.db")
    check_length(path)
    os.truncate(path, max(600, int(path.stat().st_size * keeps)))
    with pytest.raises(StoreDamaged, match="shorter than its header says"):
        Store.open(path, read_only=read_only)


@given(keeps=st.floats(0.0, 1.0, exclude_max=True))
@example(keeps=0.0)
@example(keeps=0.9999)
@settings(max_examples=25, deadline=None)
def test_every_cut_is_found(tmp_path_factory: pytest.TempPathFactory, keeps: float) -> None:
    path = filled(tmp_path_factory.mktemp("cut") / "tune.db", rows=30)
    os.truncate(path, max(100, int(path.stat().st_size * keeps)))
    with pytest.raises(StoreDamaged):
        check_length(path)


def test_what_the_log_holds_is_not_lacking(tmp_path: Path) -> None:
    path = filled(tmp_path / "tune.db", rows=4)
    with writer(path) as connection:
        fill(connection, 400)
        assert connection.execute("PRAGMA page_count").fetchone()[0] * PAGE > path.stat().st_size
        check_length(path)
        before = path.stat().st_size
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        check_length(path)
        os.truncate(path, before)  # as a writer that was killed in the middle leaves it
        assert _log_has_rest(path, before)
        check_length(path)
        with Store.open(path, read_only=True) as store:
            assert store.runs() == ()


def test_pages_of_a_log_that_was_begun_anew_are_lacking(tmp_path: Path) -> None:
    path = filled(tmp_path / "tune.db", rows=4)
    with writer(path) as connection:
        fill(connection, 400)
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        fill(connection, 1)
        assert log_of(path).stat().st_size > 100 * PAGE, "frames of before are still in it"
        check_length(path)
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(StoreDamaged):
            check_length(path)


def test_a_file_that_grows_and_shrinks_is_whole(tmp_path: Path) -> None:
    path = filled(tmp_path / "tune.db", rows=4)
    with writer(path) as connection:
        for number in range(12):
            fill(connection, 40)
            check_length(path)
            if number % 3 == 0:
                connection.execute("PRAGMA wal_checkpoint(RESTART)")
                check_length(path)
            if number % 4 == 3:
                connection.execute("DELETE FROM filling")
                connection.commit()
                connection.execute("VACUUM")
                check_length(path)
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                check_length(path)


@pytest.mark.parametrize("content", [b"", b"no database at all " * 400, b"SQLite format 3\0"])
def test_the_length_of_another_file_is_nothing_to_say_of(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    check_length(path)
    check_length(tmp_path / "none.db")


def test_a_journal_is_put_back_first(tmp_path: Path) -> None:
    path = filled(tmp_path / "tune.db")
    path.with_name("tune.db-journal").write_bytes(b"x")
    os.truncate(path, path.stat().st_size // 2)
    check_length(path)
