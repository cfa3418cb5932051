"""A copy of a database that is whole at every moment, so that a demo never runs on the shipped file."""

from __future__ import annotations

import os
import sqlite3
import uuid
from contextlib import suppress
from pathlib import Path

from engine.store.connection import open_connection
from engine.store.database_file import database_path
from engine.store.errors import SQLITE_ERRORS, StoreDamaged, explain


def copy_database(source: Path, destination: Path) -> Path:
    """Copy a database, also one that is being written, with SQLite's backup; an existing destination is replaced.

    The copy appears whole or not at all. Raises StoreError, which names the source where that is what's damaged.
    """
    origin = open_connection(source, read_only=True, create=False)
    destination = database_path(destination)
    part = destination.with_name(f"{destination.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        copy = sqlite3.connect(part, isolation_level=None)
        try:
            origin.db.conn.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE").fetchall()
        finally:
            copy.close()
        for suffix in ("-wal", "-shm"):
            destination.with_name(destination.name + suffix).unlink(missing_ok=True)
        os.replace(part, destination)
    except SQLITE_ERRORS as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        found = explain(error, destination)
        raise (explain(error, source) if isinstance(found, StoreDamaged) else found) from error
    finally:
        origin.close()
    return destination
