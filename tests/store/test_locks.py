"""A lock that a connection of this process holds survives every function that takes a path to its database."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from engine.store import (
    NotResults,
    Store,
    StoreError,
    copy_database,
    is_database,
    merge_databases,
    opened_to_read,
    read_document,
    read_results,
    upgrade_file,
)
from engine.store.connection import _open_frozen, open_connection
from engine.store.database_file import is_beside_a_database
from engine.store.schema import SCHEMA

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the kernel's list of locks is Linux's")

LAST = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT id FROM run').fetchall(); c.close()"


def held(path: Path) -> set[tuple[str, str, str, str]]:
    """The locks of this process on a database and on the index of its log: file, kind, first and last byte."""
    names = {file.stat().st_ino: file.name for file in (path, path.with_name(f"{path.name}-shm")) if file.exists()}
    rows = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
    found = [(names.get(int(row[5].rsplit(":", 1)[1]), ""), *row[3:4], *row[6:8]) for row in rows if row[1] == "POSIX"]
    mine = [row[4] for row in rows if row[1] == "POSIX"]
    return {lock for lock, owner in zip(found, mine, strict=True) if lock[0] and owner == str(os.getpid())}  # type: ignore[misc]


def end_as_the_last(path: Path) -> None:
    """Another process opens the database and closes it, which deletes the log if nobody else seems to be there."""
    subprocess.run([sys.executable, "-c", LAST, str(path)], check=True)


def written(path: Path, sample: object) -> None:
    with Store.open(path) as store:
        sample.begin(store)  # type: ignore[attr-defined]


def opened(**arguments: bool) -> Callable[[Path, Path], None]:
    return lambda path, folder: Store.open(path, **arguments).close()


def _merge_others(path: Path, folder: Path) -> None:
    written_elsewhere = folder / "other.db"
    Store.open(written_elsewhere).close()
    merge_databases([written_elsewhere, path])


def _read_here(path: Path, folder: Path) -> None:
    with opened_to_read(path, may_be_missing=True):
        pass


def _look_as_once(path: Path, folder: Path) -> None:
    with closing(open_connection(path, read_only=True, create=False)) as connection:
        connection.rows("SELECT * FROM run")


TAKES_A_PATH: dict[str, Callable[[Path, Path], object]] = {
    "a writer": opened(),
    "a writer that creates nothing": opened(create=False),
    "a reader": opened(read_only=True),
    "a connection": _look_as_once,
    "a reader of its index": lambda path, folder: Store.open(path.with_name(f"{path.name}-shm"), read_only=True),
    "a writer of its index": lambda path, folder: Store.open(path.with_name(f"{path.name}-shm")),
    "is_database": lambda path, folder: is_database(path),
    "is_database of its index": lambda path, folder: is_database(path.with_name(f"{path.name}-shm")),
    "is_beside_a_database": lambda path, folder: is_beside_a_database(path.with_name(f"{path.name}-shm")),
    "upgrade_file": lambda path, folder: upgrade_file(path),
    "copy_database": lambda path, folder: copy_database(path, folder / "copy.db"),
    "merge_databases from it": _merge_others,
    "merge_databases into a new one": lambda path, folder: merge_databases([path], folder / "merged.db"),
    "opened_to_read": _read_here,
    "read_document": lambda path, folder: read_document(path),
    "read_document of its index": lambda path, folder: read_document(path.with_name(f"{path.name}-shm")),
    "read_document of its log": lambda path, folder: read_document(path.with_name(f"{path.name}-wal")),
    "read_results": lambda path, folder: read_results(path),
    "a link to it": lambda path, folder: read_document(_link(path, folder)),
}


def _link(path: Path, folder: Path) -> Path:
    (folder / "link.json").symlink_to(path)
    return folder / "link.json"


@pytest.fixture(params=["reader", "writer"])
def holder(request: pytest.FixtureRequest, path: Path, sample: object) -> Iterator[Store]:
    written(path, sample)
    with Store.open(path, read_only=request.param == "reader") as store:
        store.runs()
        yield store


@pytest.mark.parametrize("name", TAKES_A_PATH)
def test_no_function_that_takes_a_path_drops_a_lock(name: str, holder: Store, path: Path, tmp_path: Path) -> None:
    before = held(path)
    assert {lock[0] for lock in before} == {path.name, f"{path.name}-shm"}
    folder = tmp_path / "beside"
    folder.mkdir()
    with suppress(StoreError, NotResults):
        TAKES_A_PATH[name](path, folder)
    assert before <= held(path)
    end_as_the_last(path)
    assert path.with_name(f"{path.name}-wal").exists()


@pytest.mark.parametrize("names", [("frozen copy",), ("frozen copy", "is_database")])
def test_a_frozen_copy_drops_no_lock(names: tuple[str, ...], holder: Store, path: Path) -> None:
    before = held(path)
    with closing(_open_frozen(path)) as frozen:
        assert len(frozen.rows("SELECT id FROM run")) == 1
    assert before <= held(path)


def test_what_two_writers_wrote_beside_a_reader_is_there(path: Path, sample: object, tmp_path: Path) -> None:
    """A process that ends while this one looks on and writes now and then: no row is lost, and nothing is damaged."""
    written(path, sample)
    with Store.open(path, read_only=True) as reader:
        for number in range(6):
            assert is_database(path)
            with Store.open(path, create=False) as writer:
                writer.forbid({"TRIAL": number}, family="f", author="here")
                end_as_the_last(path)
                writer.forbid({"TRIAL": number + 100}, family="f", author="here")
            write_elsewhere(path, number)
            seen = [row for row in reader.forbidden()]
            assert len(seen) == 3 * (number + 1)
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert plain.execute("SELECT count(*) FROM forbidden").fetchone() == (18,)


def write_elsewhere(path: Path, number: int) -> None:
    program = (
        "import sys; from pathlib import Path; from engine.store import Store\n"
        "with Store.open(Path(sys.argv[1]), create=False) as store:\n"
        "    store.forbid({'TRIAL': int(sys.argv[2])}, family='f', author='there')"
    )
    subprocess.run([sys.executable, "-c", program, str(path), str(number + 200)], check=True, env=dict(os.environ))


def test_another_processs_lock_is_kept_to(path: Path, sample: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where locks get lost, a write goes through while another process has the database for itself."""
    written(path, sample)
    monkeypatch.setattr("engine.store.connection.BUSY_S", 0.3)
    monkeypatch.setattr("engine.store.connection.WORD_S", 0.1)
    told: list[str] = []
    with Store.open(path, read_only=True), Store.open(path, waiting=lambda: told.append("waits")) as writer:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(StoreError, match="locked by another process"):
                writer.forbid({"TRIAL": 1}, family="f", author="here")
            assert told == ["waits", "waits"]
            other.execute("ROLLBACK")
        writer.forbid({"TRIAL": 1}, family="f", author="here")
        assert told == ["waits", "waits"]
        assert len(writer.forbidden()) == 1


def test_a_file_of_another_kind_is_no_database(tmp_path: Path) -> None:
    kinds = {"text": b"hello", "zeros": bytes(9000), "empty": b"", "byte": b"{", "cut": b"SQLite format 3\0"}
    for name, content in kinds.items():
        (tmp_path / name).write_bytes(content)
        assert not is_database(tmp_path / name)
    os.mkfifo(tmp_path / "pipe")
    assert not is_database(tmp_path / "pipe")
    with pytest.raises(StoreError, match="pipe or a device"):
        Store.open(tmp_path / "pipe", read_only=True)
    Store.open(tmp_path / "t.db").close()
    shutil.copy(tmp_path / "t.db", tmp_path / "renamed.json")
    assert is_database(tmp_path / "renamed.json")
    assert not is_database(tmp_path)
    assert SCHEMA >= 1
