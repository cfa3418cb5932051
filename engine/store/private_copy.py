"""A database as it is at one moment, read with no byte of it locked.

Who reads a database without a write-ahead log (in SQLite's modes DELETE, TRUNCATE, PERSIST) keeps its writer waiting,
and a writer that waits for nobody fails. So one that is being written is read as a private copy; one at rest is read in
its place, until it is written again.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

from engine.store.database_file import connect_unlocked
from engine.store.errors import ANOTHER, StoreLocked
from engine.store.guest import Seen, journal_of, log_of, seen_now

COPY_S = 1.5
"""How long a copy is begun anew where the file was written meanwhile, though one is made in any case."""
PAUSE_TIMES = 3
"""A try that failed is followed by a pause that is so many times as long: it would take a core otherwise."""
SETTLED_S = 0.012
"""Two writes that are no further apart may have the same time of change."""
AT_REST_S = 10.0
"""A file that wasn't written for so long is at rest."""


def lacks_log(path: Path) -> bool:
    """Whether the database isn't in WAL mode; no lock is asked for. One that can't be read isn't said to lack it."""
    try:
        with closing(
            sqlite3.connect(f"{path.as_uri()}?mode=ro&nolock=1", uri=True, isolation_level=None)
        ) as connection:
            connection.execute("PRAGMA schema_version").fetchall()
    except sqlite3.OperationalError as error:
        return str(error.sqlite_errorname) == "SQLITE_READONLY_ROLLBACK"  # who wrote it was killed
    except (sqlite3.Error, UnicodeDecodeError):
        return False
    return True


def is_at_rest(path: Path) -> bool:
    """Whether nothing wrote the database a moment ago, and nothing was left half written."""
    return not journal_of(path).exists() and _age_s(path) > AT_REST_S


def copied(path: Path) -> tuple[tempfile.TemporaryDirectory[str], Seen]:
    """A folder with the file, its log and its journal as they were at one moment, and what they looked like then.

    Raises StoreLocked where they are written all the time.
    """
    ends = time.monotonic() + COPY_S
    while True:
        began, seen = time.monotonic(), seen_now(path)
        if min(_age_s(file) for file in (path, log_of(path), journal_of(path))) > SETTLED_S:
            with closing(connect_unlocked(path)) as origin:
                content = origin.serialize()
            if seen_now(path) == seen and (folder := _written(content, path, seen)) is not None:
                return folder, seen
        if time.monotonic() > ends:
            raise _never_still(path)
        time.sleep(SETTLED_S / 2 + PAUSE_TIMES * (time.monotonic() - began))


def _written(content: bytes, path: Path, seen: Seen) -> tempfile.TemporaryDirectory[str] | None:
    """A folder with a copy of the content and of what is beside the file; None where that has changed meanwhile."""
    folder = tempfile.TemporaryDirectory(prefix="emmy-")
    try:
        (Path(folder.name) / path.name).write_bytes(content)
        for beside in (log_of(path), journal_of(path)):
            with suppress(FileNotFoundError):  # SQLite locks no byte of either
                shutil.copyfile(beside, Path(folder.name) / beside.name)
        if seen_now(path) == seen:
            return folder
    except BaseException:
        folder.cleanup()
        raise
    folder.cleanup()
    return None


def _never_still(path: Path) -> StoreLocked:
    if lacks_log(path):
        cause = f"{path} is written all the time and has no write-ahead log, so that reading it would stop its writer"
        return StoreLocked(cause, f"open it again once it is at rest, or {ANOTHER}", names=True)
    return StoreLocked(f"{path} is being written all the time; open it again in a while")


def _age_s(path: Path) -> float:
    """Seconds since a file was written, by this machine's clock; any number of them where there is none."""
    try:
        return abs(time.time() - path.stat().st_mtime)
    except OSError:
        return float("inf")
