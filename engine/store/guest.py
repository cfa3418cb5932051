"""Reading another user's database without a file of one's own beside it.

SQLite reads a WAL database through its log and the log's index, and makes them where they are missing, in the reader's
name. A reader can't take them away again, and the owner may not write them: who only looked would lock the owner out.
So a guest never makes one: files that are there are read as they are, and a database without them is read as a private
copy, which is made anew once the file or its log differs.
"""

from __future__ import annotations

import os
import pwd
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path

Seen = tuple[tuple[int, int, int, int] | None, ...]


def is_guest(path: Path) -> bool:
    """Whether SQLite would make files beside `path` that belong to somebody else than the database does.

    What root makes, SQLite gives to the database's owner; in a closed folder nobody makes any.
    """
    user = os.geteuid()
    return user not in (0, path.stat().st_uid) and os.access(path.parent, os.W_OK)


def log_of(path: Path) -> Path:
    """The write-ahead log."""
    return path.with_name(path.name + "-wal")


def journal_of(path: Path) -> Path:
    """What was there before the transaction that is being written, in a database without a write-ahead log."""
    return path.with_name(path.name + "-journal")


def has_log_and_index(path: Path) -> bool:
    """Whether both files that a reader of a WAL database needs are there."""
    return all(path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-shm"))


def is_shut(error: sqlite3.OperationalError) -> bool:
    """Whether SQLite lacks the right to make, or to write, what it needs beside a database."""
    return str(error.sqlite_errorname).startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN"))


def seen_now(path: Path) -> Seen:
    """What differs once the database, its log or journal was written, made or taken away; no file is opened for it."""
    return tuple(_state(file) for file in (path, log_of(path), journal_of(path)))


def _state(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def take_back_log(path: Path) -> None:
    """Remove an empty log of our own, made where the owner closed the database in the moment in which it was opened.

    Only where nothing can go wrong: nobody else can write that log, and the folder lets nobody remove another's file.
    """
    log = log_of(path)
    with suppress(OSError):
        status = log.stat()
        ours = status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if ours and status.st_size == 0 and path.parent.stat().st_mode & stat.S_ISVTX:
            log.unlink()


def owner_name(path: Path) -> str:
    """The user whom a file belongs to, by name where there is one. Raises OSError."""
    user = path.stat().st_uid
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
