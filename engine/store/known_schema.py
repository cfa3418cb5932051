"""Whether a file holds tables of Emmy that this version knows."""

from __future__ import annotations

from pathlib import Path

from sqlite_utils import Database

from engine.store.errors import ANOTHER, NewerSchema, NotEmmys, StoreDamaged
from engine.store.migrations import schema_version
from engine.store.schema import APPLICATION_ID, SCHEMA, TABLES


def check_owner(db: Database, path: Path, *, read_only: bool) -> None:
    """Nothing is written into another program's database, not even a journal mode. Raises NotEmmys."""
    if not db.table_names():
        return
    if db.conn.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        created = "" if read_only else ", and Emmy creates it"
        raise NotEmmys(f"{path} is a database of another program; name another file{created}")


def known_version(db: Database, path: Path) -> int:
    """The version of the schema. Raises StoreDamaged where none is named, NewerSchema for one of the future."""
    try:
        version = schema_version(db)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        raise StoreDamaged(f"{path} is damaged ({error})", ANOTHER, names=True) from None
    if version > SCHEMA:
        raise NewerSchema(
            f"{path} was written by a newer Emmy (schema {version}, this one knows {SCHEMA}): upgrade emmy-tui"
        )
    return version


def check_tables(db: Database, path: Path) -> None:
    """Raises StoreDamaged where a table of the current schema is missing."""
    missing = set(TABLES) - set(db.table_names())
    if missing:
        raise StoreDamaged(f"{path} lacks the table {min(missing)!r}", ANOTHER, names=True)
