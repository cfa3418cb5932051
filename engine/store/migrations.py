"""How an old database becomes a current one: ordered functions, each in one transaction with the record that it ran.

A migration adds and converts; it never drops a row. The position in MIGRATIONS is the schema version it leads to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlite_utils import Database

from engine.store.schema import add_dependent_launches, add_steering, create_tables

Migration = Callable[[Database], None]
VERSION = re.compile(r"[1-9][0-9]{0,8}")

MIGRATIONS: tuple[Migration, ...] = (create_tables, add_dependent_launches, add_steering)


def schema_version(db: Database) -> int:
    """The version that `meta` names, from 1 on; 0 for a database without tables.

    Raises ValueError, which says what is wrong, for one that has tables and names no such version.
    """
    tables = db.table_names()
    if not tables:
        return 0
    row = None
    if "meta" in tables and {"key", "value"} <= set(db.table("meta").columns_dict):
        row = next(iter(list(db.query("SELECT value FROM meta WHERE key = 'schema'"))), None)
    if row is None:
        raise ValueError("it has tables, and its table meta names no schema version")
    said = row["value"]
    if not isinstance(said, str) or VERSION.fullmatch(said) is None:
        raise ValueError(f"its table meta names the schema version {str(said)[:40]!r}")
    return int(said)


def migrate(db: Database, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring the database to the last schema of `migrations`; does nothing when it is there.

    Each step takes the write lock first and looks at the version again, because two processes may open one file.
    """
    for version, step in enumerate(migrations, start=1):
        if schema_version(db) >= version:
            continue
        db.conn.execute("BEGIN IMMEDIATE")
        try:
            if schema_version(db) < version:
                step(db)
                db.table("meta").upsert({"key": "schema", "value": str(version)}, pk="key")
            db.conn.execute("COMMIT")
        except BaseException:
            if db.conn.in_transaction:
                db.conn.execute("ROLLBACK")
            raise
