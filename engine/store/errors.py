"""What can go wrong with a database, each as one clear sentence that names the cause and the way out.

StoreError
├── StoreMissing      no file there
├── NotADatabase      a file of another kind
├── NotEmmys          a SQLite database of another program
├── NewerSchema       written by a newer Emmy
├── StoreReadOnly     the folder, the file or the file system can't be written
├── StoreUnreadable   the file can't be read
├── StoreFull         no space left on the disk
├── StoreLocked       another process holds the write lock
├── StoreDamaged      SQLite says that the file is damaged
└── BadRow            one row of the database doesn't say what its column promises
"""

from __future__ import annotations

import errno
import shlex
import sqlite3
from pathlib import Path

from engine.disk import free_bytes


class StoreError(Exception):
    """The root of everything above; its text is meant for a person. `is_output`: the file can't be written.

    `is_input`: the file is not what it should be, whatever is asked of it. The text is the cause and the way out; where
    that ends with naming another database (`names`), each program and Python say how that is done there, and the text
    alone leaves it open, so that it is true of all of them. `in_python` is the way out there where it is another one.
    """

    is_output = False
    is_input = False

    def __init__(self, cause: str, way_out: str = "", *, in_python: str = "", names: bool = False) -> None:
        super().__init__(f"{cause}; {way_out}" if way_out else cause)
        self._names = names
        self._in_python = f"{cause}; {in_python}" if in_python else str(self)

    def named_by(self, how: str) -> str:
        """The text for who names a database by `how`: --db for one."""
        return f"{self} with {how}" if self._names else str(self)

    @property
    def in_python(self) -> str:
        """The text for who asks in Python."""
        return self.named_by("db=") if self._names else self._in_python


class StoreMissing(StoreError):
    pass


class NotADatabase(StoreError):
    pass


class NotEmmys(StoreError):
    pass


class NewerSchema(StoreError):
    pass


class StoreReadOnly(StoreError):
    is_output = True


class StoreUnreadable(StoreError):
    pass


class StoreFull(StoreError):
    is_output = True


class StoreLocked(StoreError):
    """`partly`: transactions before the one that the lock stopped were stored through the same connection."""

    partly = False


class StoreDamaged(StoreError):
    is_input = True


class BadRow(StoreError):
    """`alike` is one for all rows that are bad in the same way: their table, and what is wrong whatever they hold."""

    def __init__(self, text: str, alike: tuple[str, str]) -> None:
        super().__init__(text)
        self.alike = alike


ANOTHER = "name another database"
"""The way out where nothing else helps; which option names one is said by `named_by`."""
_SCARCE_BYTES = 64 * 1024
"""SQLite reports a full disk as an I/O error where it maps memory; with less than this free, that is the cause."""


def explain(error: Exception, path: Path, *, reading: bool = False) -> StoreError:
    """The StoreError that says in words what one of SQLITE_ERRORS at `path` means to who was `reading` or writing."""
    if isinstance(error, OSError):
        return _explain_os(error, path, reading=reading)
    name = str(getattr(error, "sqlite_errorname", None) or "")
    text = str(error)
    if is_no_text(error):
        return damaged(path, "a text in it is no UTF-8")
    if isinstance(error, sqlite3.Error) and is_full(path, error):
        return no_room(path)
    if name.startswith("SQLITE_NOTADB"):
        return no_database(path)
    if name.startswith("SQLITE_CORRUPT"):
        return damaged(path, text)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        cause = f"{path} is locked by another process that writes it"
        return StoreLocked(cause, f"wait for it, or {ANOTHER}", names=True)
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        if reading:
            return unreadable(path, text)
        advice = f"make it and its folder writable, or {ANOTHER}"
        return StoreReadOnly(f"{path} can't be written ({text})", advice, names=True)
    return StoreError(f"{path}: {text or type(error).__name__}", f"if this stays, {ANOTHER}", names=True)


def is_full(path: Path, error: sqlite3.Error | None = None) -> bool:
    """Whether the disk of `path` has no room, or the `error` says so: SQLite calls it an I/O error at times."""
    name = str(getattr(error, "sqlite_errorname", None) or "")
    if name.startswith("SQLITE_FULL"):
        return True
    return (error is None or name.startswith("SQLITE_IOERR")) and free_bytes(path.parent) < _SCARCE_BYTES


def is_no_text(error: Exception) -> bool:
    """Whether Python could make no text of what a row holds."""
    return isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error)


def unreadable(path: Path | str, what: str = "") -> StoreUnreadable:
    """The error of a file that may not be read; `what` is the system's word for it."""
    cause = f"{path} can't be read ({what})" if what else f"{path} can't be read"
    return StoreUnreadable(cause, f"ask its owner for access, or {ANOTHER}", names=True)


def _explain_os(error: OSError, path: Path, *, reading: bool) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return no_room(path)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        where = error.filename or path
        if reading:
            return unreadable(where, error.strerror or "")
        advice = "name a database in another folder"
        return StoreReadOnly(f"{where} can't be written ({error.strerror})", advice, names=True)
    return StoreError(f"{path}: {error.strerror or error}", ANOTHER, names=True)


def no_database(path: Path, *, created: bool = False) -> NotADatabase:
    """The error of a file of another kind; `created` says that one that isn't there would be made."""
    return NotADatabase(
        f"{path} is no SQLite database; name another file" + (", and Emmy creates it" if created else "")
    )


def plain_cause(error: Exception) -> str:
    """What is wrong with a row or a document, for people: Python's words about types say nothing of it."""
    if isinstance(error, TypeError | AttributeError):
        return "a value in it is of another kind than it should be"
    return str(error)


def damaged(path: Path, what: str) -> StoreDamaged:
    """The error of a file whose content SQLite, or what a schema promises, finds broken; `what` says where."""
    advice = f"save what can be read with `sqlite3 {shlex.quote(str(path))} .recover`, or {ANOTHER}"
    return StoreDamaged(f"{path} is damaged ({what})", advice, names=True)


def no_room(path: Path) -> StoreFull:
    """The error of a database on a full disk."""
    return StoreFull(
        f"no space left on the disk of {path}; everything measured before is kept, free some space and do it again"
    )


SQLITE_ERRORS = (sqlite3.Error, OSError, UnicodeDecodeError)
"""What SQLite, its file and a damaged text in it raise."""
