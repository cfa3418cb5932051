"""Whether a database file is as long as it says.

A file that was cut short reads well for as long as nobody asks for a page that it lacks, and a connection that has read
its pages already never asks. Pages that the file lacks may be in the write-ahead log, from which they are carried over
into the file; what a journal holds is put back by whoever opens the database next.
"""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing
from pathlib import Path

from engine.store.database_file import connect_unlocked
from engine.store.errors import damaged
from engine.store.guest import log_of

_TRIES = 5
"""How often a file is looked at that grows meanwhile."""
_LOG_HEADER, _FRAME_HEADER = 32, 24


def check_length(path: Path) -> None:
    """Raise StoreDamaged for a file that is shorter than its header says and whose log hasn't got the rest."""
    for _ in range(_TRIES):
        size = _size(path)
        if not _lacks_pages(path, size) or _size(path.with_name(f"{path.name}-journal")) or _log_has_rest(path, size):
            return
        if _size(path) == size:
            raise damaged(path, "it is shorter than its header says")


def _size(path: Path) -> int:
    """In bytes; 0 where no file is."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _lacks_pages(path: Path, size: int) -> bool:
    """By SQLite's own rule, which knows when the header's count of pages is worth nothing; it lets a part of the last
    page pass."""
    if not size:
        return False
    read_header = False
    try:
        with closing(connect_unlocked(path)) as connection:
            connection.execute("PRAGMA user_version").fetchall()  # reads the header, and no page behind it
            read_header = True
            pages, page = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
            return bool(pages * page > size)
    except (sqlite3.Error, UnicodeDecodeError) as error:  # what else is wrong with it, others tell
        return not read_header and str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_CORRUPT")


def _log_has_rest(path: Path, size: int) -> bool:
    """Whether what was committed to the write-ahead log has every page that a file of `size` bytes lacks."""
    try:
        with log_of(path).open("rb") as log:
            header = log.read(_LOG_HEADER)
            if len(header) < _LOG_HEADER:
                return False
            (page,) = struct.unpack(">I", header[8:12])
            found: set[int] = set()
            begun: set[int] = set()
            count = 0
            while len(frame := log.read(_FRAME_HEADER)) == _FRAME_HEADER and frame[8:16] == header[16:24]:
                number, pages = struct.unpack(">II", frame[:8])
                log.seek(page, 1)
                begun.add(number)
                if pages:
                    found |= begun
                    begun, count = set(), pages
    except OSError:
        return False
    return count > 0 and found.issuperset(range(size // page + 1, count + 1))
