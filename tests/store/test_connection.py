"""Every state a path can be in ends in an open database or in one sentence that says what to do."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from engine.events import StateChanged
from engine.store import SCHEMA, Store, StoreError, is_database, upgrade_file
from engine.store.errors import (
    NewerSchema,
    NotADatabase,
    NotEmmys,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreMissing,
    StoreReadOnly,
    StoreUnreadable,
)
from engine.vocabulary import Context, Target


def one_sentence(error: pytest.ExceptionInfo[StoreError], path: Path) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert "Traceback" not in text
    assert path.name in text or str(path.parent) in text
    return text


def test_a_new_database_is_created_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "? #%.db"
    with Store.open(path) as store:
        assert (store.path, store.frozen, store.runs()) == (path, False, ())
    with Store.open(path, read_only=True) as store:
        assert store.latest_run() is None
    assert {file.name for file in path.parent.iterdir()} <= {path.name, f"{path.name}-wal", f"{path.name}-shm"}


def test_it_is_in_wal_mode_with_foreign_keys(path: Path, store: Store) -> None:
    connection = store._connection.db.conn
    pragmas = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "foreign_keys")}
    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1}
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 1


def test_the_home_folder_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with Store.open("~/tune.db") as store:
        assert store.path == tmp_path / "tune.db"


@pytest.mark.parametrize("arguments", [{"read_only": True}, {"create": False}])
def test_a_missing_file(path: Path, arguments: dict[str, bool]) -> None:
    with pytest.raises(StoreMissing) as error:
        Store.open(path, **arguments)
    assert "emmy tune" in one_sentence(error, path)
    assert not path.exists()


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("content", [b"not a database at all", b"\x7fELF" + bytes(4096), b"SQLite format 4\0" * 99])
def test_garbage_stays_as_it_is(path: Path, content: bytes, read_only: bool) -> None:
    path.write_bytes(content)
    with pytest.raises(NotADatabase) as error:
        Store.open(path, read_only=read_only)
    assert "no SQLite database" in one_sentence(error, path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("read_only", [True, False])
def test_garbage_behind_the_magic_bytes(path: Path, read_only: bool) -> None:
    path.write_bytes(b"SQLite format 3\0" + os.urandom(9000))
    with pytest.raises((NotADatabase, StoreDamaged)) as error:
        Store.open(path, read_only=read_only)
    one_sentence(error, path)


def test_a_damaged_page_is_said(path: Path, sample) -> None:
    with Store.open(path) as store:
        run = sample.begin(store)
        for trial in range(300):
            store.record_measurement(sample.ok(trial + 1.0, TRIAL=trial), run=run, trial=trial)
    content = bytearray(path.read_bytes())
    for page in range(4, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(bytes(content))
    with pytest.raises(StoreDamaged) as error, Store.open(path, read_only=True) as store:
        store.variants(top=300)
    assert ".recover" in one_sentence(error, path)


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(NotADatabase, match="is a folder"):
        Store.open(tmp_path)


def test_an_empty_file_is_filled_by_a_writer_only(path: Path) -> None:
    path.touch()
    with pytest.raises(NotADatabase, match="is empty"):
        Store.open(path, read_only=True)
    with Store.open(path) as store:
        assert store.runs() == ()


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("table", ["customers", "meta"])
def test_another_programs_database_is_left_alone(path: Path, table: str, read_only: bool) -> None:
    other = sqlite3.connect(path)
    other.execute(f"CREATE TABLE {table} (key TEXT, value TEXT)")
    other.execute(f"INSERT INTO {table} VALUES ('schema', '1')")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(NotEmmys) as error:
        Store.open(path, read_only=read_only)
    assert "another program" in one_sentence(error, path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("read_only", [True, False])
def test_a_newer_schema_is_refused_in_words(path: Path, read_only: bool) -> None:
    Store.open(path).close()
    change(path, "UPDATE meta SET value = '7' WHERE key = 'schema'")
    with pytest.raises(NewerSchema) as error:
        Store.open(path, read_only=read_only)
    text = one_sentence(error, path)
    assert f"schema 7, this one knows {SCHEMA}" in text
    assert "upgrade emmy-tui" in text


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    "statement",
    [
        *(
            f"UPDATE meta SET value = {said}"
            for said in ("'one'", "'-1'", "'0'", "'03'", "'3.0'", "NULL", "x'33'", "''")
        ),
        *("DELETE FROM meta", "DROP TABLE meta", "DROP TABLE grouping_kernel", "ALTER TABLE meta RENAME value TO said"),
    ],
)
def test_a_schema_that_lies(path: Path, statement: str, read_only: bool) -> None:
    Store.open(path).close()
    change(path, statement)
    with pytest.raises(StoreDamaged) as error:
        Store.open(path, read_only=read_only)
    assert "name another database" in one_sentence(error, path)


NO_UTF8 = "CAST(x'ff22fe' AS TEXT)"


@pytest.mark.parametrize("read_only", [True, False])
def test_a_schema_in_other_bytes_than_utf8_is_damaged(path: Path, read_only: bool) -> None:
    Store.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(f"UPDATE sqlite_master SET name = {NO_UTF8}, sql = {NO_UTF8} WHERE name = 'pin'")
    connection.commit()
    connection.close()
    assert is_database(path)
    for ask in (lambda: Store.open(path, read_only=read_only), lambda: upgrade_file(path)):
        with pytest.raises(StoreDamaged) as error:
            ask()
        assert ".recover" in one_sentence(error, path)


@pytest.mark.parametrize(
    ("table", "column", "ask"),
    [
        ("run", "target", lambda store, sample: store.runs()),
        ("measurement", "schedule", lambda store, sample: store.schedules(sample.matmul.key, sample.context.key)),
        ("measurement", "cause", lambda store, sample: store.variants()[0].rows),
        ("event", "body", lambda store, sample: list(store.events_of(store.runs()[0].id))),
    ],
)
def test_a_text_in_other_bytes_than_utf8_costs_its_row_and_is_named(path: Path, sample, table, column, ask) -> None:
    with Store.open(path) as store:
        run = sample.begin(store)
        for warps in (4, 8):
            store.record_measurement(sample.ok(NUM_WARPS=warps), run=run)
        store.record_events(run, [StateChanged(at=at, state="running") for at in (1.0, 2.0)])
    with Store.open(path, read_only=True) as store:
        whole = len(ask(store, sample))
    change(path, f"UPDATE {table} SET {column} = {NO_UTF8} WHERE rowid = (SELECT min(rowid) FROM {table})")
    with Store.open(path, read_only=True) as store:
        assert len(ask(store, sample)) == whole - 1
        (said,) = store.left_out
    assert f"of table {table}" in said
    assert "the rest is read without it" in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
@pytest.mark.parametrize("read_only", [True, False])
def test_only_a_regular_file_is_a_database(tmp_path: Path, read_only: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(NotADatabase, match="is a pipe or a device"):
            Store.open(path, read_only=read_only)
        assert not list(path.parent.glob(f"{path.name}-*"))


def test_another_writer_holds_the_lock(path: Path, store: Store, sample, monkeypatch: pytest.MonkeyPatch) -> None:
    store._connection.db.conn.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreLocked) as error:
        store.record_context(sample.context)
    one_sentence(error, path)
    other.rollback()
    store.record_context(sample.context)
    assert store.contexts() == (sample.context,)


def test_a_reader_writes_nothing(path: Path, store: Store, sample) -> None:
    with Store.open(path, read_only=True) as reader, pytest.raises(StoreReadOnly) as error:
        reader.record_context(sample.context)
    assert "reading only" in one_sentence(error, path)


def test_a_full_disk_keeps_everything_before(path: Path, store: Store, run: str, sample) -> None:
    connection = store._connection.db.conn
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 8}")
    kept = count(1)

    def record_until_full() -> None:
        while True:
            store.record_measurement(sample.ok(TRIAL=next(kept)), run=run)

    with pytest.raises(StoreFull) as error:
        record_until_full()
    rows = next(kept) - 2
    assert "no space left" in one_sentence(error, path)
    assert len(store.schedules(sample.matmul.key, sample.context.key)) == rows > 0
    connection.execute("PRAGMA max_page_count = 100000")
    store.record_measurement(sample.ok(1.0, TRIAL=-1), run=run)
    assert len(store.schedules(sample.matmul.key, sample.context.key)) == rows + 1


AS_ANOTHER_USER = """
import os, sys
from engine.store import Store, StoreError
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
path, read_only = sys.argv[1], sys.argv[2] == "read"
try:
    with Store.open(path, read_only=read_only) as store:
        print("opened", store.frozen, len(store.runs()))
except StoreError as error:
    print(type(error).__name__, error)
"""


REACHES = """
import os, sys
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(not os.access(sys.argv[1], os.R_OK | os.X_OK) or os.access(sys.argv[1], os.W_OK))
"""


def as_another_user(path: Path, how: str) -> str:
    child = subprocess.run([sys.executable, "-c", AS_ANOTHER_USER, str(path), how], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    return child.stdout.strip()


@pytest.fixture
def closed_folder(sample) -> Iterator[Path]:
    """A database in a folder that nobody but root may write; not below pytest's own folder, which others can't pass."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        with Store.open(folder / "tune.db") as store:
            sample.begin(store)
        folder.chmod(0o555)
        (folder / "tune.db").chmod(0o444)
        reached = subprocess.run([sys.executable, "-c", REACHES, str(folder)], check=False)
        if reached.returncode:
            pytest.skip("another user can't reach the folder for temporary files, or this one can write everywhere")
        yield folder
        folder.chmod(0o755)


def test_a_read_only_folder_can_be_read(closed_folder: Path) -> None:
    assert as_another_user(closed_folder / "tune.db", "read") == "opened True 1"


def test_someone_elses_live_database_can_be_followed(closed_folder: Path, sample) -> None:
    path = closed_folder / "tune.db"
    path.chmod(0o644)
    with Store.open(path) as store:
        store.start_run(sample.run_info())
        assert as_another_user(path, "read") == "opened False 2"


def test_a_read_only_folder_can_not_be_written(closed_folder: Path) -> None:
    text = as_another_user(closed_folder / "tune.db", "write")
    assert text.startswith("StoreReadOnly the file")
    assert "can't be written" in text
    text = as_another_user(closed_folder / "other.db", "write")
    assert text.startswith(f"StoreReadOnly the folder {closed_folder}")
    text = as_another_user(closed_folder / "deeper" / "other.db", "write")
    assert text.startswith(f"StoreReadOnly {closed_folder}")


def test_rows_still_in_the_log_of_a_read_only_folder_are_seen(closed_folder: Path, sample) -> None:
    """The writer was killed: its log is there, its index file isn't, and nobody may make one."""
    path = closed_folder / "tune.db"
    closed_folder.chmod(0o755)
    path.chmod(0o644)
    with Store.open(path) as store:
        store.start_run(sample.run_info())
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", closed_folder / f"killed.db{suffix}")
            (closed_folder / f"killed.db{suffix}").chmod(0o444)
    closed_folder.chmod(0o555)
    assert as_another_user(closed_folder / "killed.db", "read") == "opened True 2"
    assert sorted(file.name for file in closed_folder.iterdir()) == ["killed.db", "killed.db-wal", "tune.db"]


def test_a_file_that_can_not_be_read(closed_folder: Path) -> None:
    path = closed_folder / "tune.db"
    path.chmod(0o000)
    assert as_another_user(path, "read").startswith(StoreUnreadable.__name__)
    assert as_another_user(path, "write").startswith(StoreUnreadable.__name__)


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_writer_leaves_everything_in_the_one_file_while_others_read(tmp_path: Path) -> None:
    path = tmp_path / "tune.db"
    Store.open(path).close()
    with Store.open(path, read_only=True) as reader:
        assert reader.runs() == ()
        with Store.open(path) as writer:
            writer.record_context(Context("GPU", "9.0", "1", "2", "3", "4"), Target())
        subprocess.run(["cp", path, tmp_path / "copy.db"], check=True)
    with Store.open(tmp_path / "copy.db", read_only=True) as copied:
        assert [context.gpu for context in copied.contexts()] == ["GPU"]
