"""Whatever SQLite or the system says becomes one sentence of a known kind, with the path in it."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from engine.store import StoreError
from engine.store.errors import (
    NotADatabase,
    StoreDamaged,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    explain,
)

PATH = Path("/data/tune.db")


def said_by_sqlite(name: str, text: str = "what SQLite says") -> sqlite3.Error:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (said_by_sqlite("SQLITE_FULL", "database or disk is full"), StoreFull),
        (OSError(errno.ENOSPC, "No space left on device"), StoreFull),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), StoreFull),
        (said_by_sqlite("SQLITE_NOTADB"), NotADatabase),
        (said_by_sqlite("SQLITE_CORRUPT"), StoreDamaged),
        (said_by_sqlite("SQLITE_CORRUPT_INDEX"), StoreDamaged),
        (said_by_sqlite("SQLITE_BUSY"), StoreLocked),
        (said_by_sqlite("SQLITE_BUSY_SNAPSHOT"), StoreLocked),
        (said_by_sqlite("SQLITE_LOCKED"), StoreLocked),
        (said_by_sqlite("SQLITE_READONLY_DIRECTORY"), StoreReadOnly),
        (said_by_sqlite("SQLITE_CANTOPEN"), StoreReadOnly),
        (PermissionError(errno.EACCES, "Permission denied"), StoreReadOnly),
        (OSError(errno.EROFS, "Read-only file system"), StoreReadOnly),
        (said_by_sqlite("SQLITE_IOERR"), StoreError),
        (OSError(errno.EIO, "Input/output error"), StoreError),
        (sqlite3.ProgrammingError(), StoreError),
    ],
)
def test_each_cause_has_its_kind(error: Exception, kind: type[StoreError]) -> None:
    explained = explain(error, PATH)
    assert type(explained) is kind
    assert str(PATH) in str(explained)
    assert "\n" not in str(explained)


def test_an_io_error_on_a_full_disk_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 0}))
    assert type(explain(said_by_sqlite("SQLITE_IOERR_SHMSIZE"), tmp_path / "tune.db")) is StoreFull


def test_the_folder_that_could_not_be_made_is_named() -> None:
    explained = explain(PermissionError(errno.EACCES, "Permission denied", "/closed/folder"), PATH)
    assert "/closed/folder" in str(explained)
