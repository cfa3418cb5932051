"""Whether the file of a database is whole, page by page: opening one reads its first pages only."""

from __future__ import annotations

from pathlib import Path

from engine.store.connection import open_connection
from engine.store.errors import damaged


def check_database(path: Path) -> None:
    """Read every page as SQLite's quick check does. Raises StoreDamaged, or the StoreError of what can't be opened."""
    connection = open_connection(path, read_only=True, create=False)
    try:
        ((found, *_), *_) = connection.tuples("PRAGMA quick_check(1)")
    finally:
        connection.close()
    if found != "ok":
        raise damaged(path, " ".join(str(found).split()))
