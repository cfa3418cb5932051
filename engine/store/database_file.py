"""What stands at a path, asked through SQLite alone.

POSIX drops every lock that a process has on a file when the process closes any descriptor of it. A look at a database
with `open` would so take the locks away from each connection of this process, and the next process to close the
database would delete the write-ahead log under them (https://sqlite.org/howtocorrupt.html, 2.2). SQLite's own
connections know of each other, so they are the only ones that touch a database file here; tests/store/test_locks.py
holds every function that looks at one to it.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

from engine.store.errors import (
    NotADatabase,
    StoreMissing,
    StoreReadOnly,
    StoreUnreadable,
    no_database,
    unreadable,
)
from engine.store.guest import owner_name
from engine.typed_path import BadPath, typed_path

_BESIDE = ("-wal", "-shm", "-journal")
_PAGE = 512
"""The smallest page, and so the smallest database; SQLite takes a file of one byte for an empty one."""


def database_path(path: Path) -> Path:
    """The path in full. Raises StoreUnreadable with the sentence of a path that can't be meant, or not be reached."""
    try:
        return typed_path(path)
    except BadPath as error:
        raise StoreUnreadable(str(error)) from None


def is_database(path: Path) -> bool:
    """Whether a file is there that begins as every SQLite database does. One that can't be read is none."""
    try:
        path = path.expanduser().resolve()
        if is_beside_a_database(path) or not path.is_file() or path.stat().st_size < _PAGE:
            return False
        with closing(connect_unlocked(path)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.Error as error:
        return str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_CORRUPT", "SQLITE_ERROR"))
    except UnicodeDecodeError:  # SQLite names what is wrong in bytes that are no UTF-8
        return True
    except (OSError, ValueError, RuntimeError):  # RuntimeError: links in a circle, no home folder
        return False
    return True


def is_beside_a_database(path: Path) -> bool:
    """Whether the file is what SQLite keeps beside a database: its write-ahead log, the log's index, or its journal.

    The index holds locks too, so such a file is not looked into either: its name and its neighbour tell.
    """
    try:
        path = path.expanduser().resolve()
    except (OSError, ValueError, RuntimeError):  # as above: nothing that can be found stands there
        return False
    suffix = next((suffix for suffix in _BESIDE if path.name.endswith(suffix)), "")
    owner = path.name.removesuffix(suffix)
    return bool(suffix and owner) and is_database(path.with_name(owner))


def connect_unlocked(path: Path) -> sqlite3.Connection:
    """The file alone, without its write-ahead log, and with no lock asked for, kept or lost."""
    return sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True, isolation_level=None)


def check_file(path: Path, *, read_only: bool, create: bool) -> None:
    """Raise the StoreError of what stands in the way of opening `path`, as far as it is seen from outside."""
    if path.is_dir():
        raise NotADatabase(f"{path} is a folder; name a file in it")
    if not path.exists():
        if read_only or not create:
            filled = "`emmy tune` writes one"
            cause, shown = f"there is no database at {path}", "`emmy-tui --demo` shows a recorded one"
            raise StoreMissing(cause, f"{filled}, {shown}", in_python=filled)
        path.parent.mkdir(parents=True, exist_ok=True)
    elif not path.is_file():
        raise NotADatabase(f"{path} is a pipe or a device; name a file")
    elif not os.access(path, os.R_OK):
        raise unreadable(path)
    elif path.stat().st_size:
        if not is_database(path):
            raise no_database(path, created=create and not read_only)
    elif read_only or not create:
        raise NotADatabase(f"{path} is empty; `emmy tune --db {shlex.quote(str(path))}` fills it")
    if not read_only and (why := unwritable_because(path)):
        advice = "" if _in_the_way(path) else "make it writable, or "
        raise StoreReadOnly(why, f"{advice}name a database elsewhere", names=True)


def unwritable_because(path: Path) -> str:
    """What keeps the database at `path` from being written, as far as it is seen from outside, or ""."""
    try:
        return _unwritable_because(path)
    except OSError as error:  # a folder on the way may not be entered, or what was seen a moment ago is gone
        return f"{path} can't be reached ({error.strerror or error})"


def _unwritable_because(path: Path) -> str:
    for needed in (path, path.parent):
        if needed.exists() and not os.access(needed, os.W_OK):
            return f"the {'folder' if needed.is_dir() else 'file'} {needed} can't be written"
    if beside := _in_the_way(path):
        owners = ", ".join(dict.fromkeys(owner_name(file) for file in beside))
        files = " and ".join(str(file) for file in beside)
        them, belong = ("them", "belong") if len(beside) > 1 else ("it", "belongs")
        return (
            f"{path} can't be written, as {files} beside it {belong} to {owners}: once nobody has the database open, "
            f"{owners} or the folder's owner can delete {them}"
        )
    return ""


def _in_the_way(path: Path) -> list[Path]:
    """What SQLite keeps beside the database and another user made, so that it can't be written."""
    beside = (path.with_name(path.name + suffix) for suffix in _BESIDE)
    return [file for file in beside if file.exists() and not os.access(file, os.W_OK)]


def remove_database(path: Path) -> None:
    """Take away the file and what SQLite keeps beside it, as far as they are there. Raises OSError."""
    for suffix in ("", *_BESIDE):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
