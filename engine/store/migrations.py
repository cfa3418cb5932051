"""How an old database becomes a current one: ordered functions, each in one transaction with the record that it ran.

A migration adds and converts; it never drops a row. The position in MIGRATIONS is the schema version it leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlite_utils import Database

from engine.store.schema import add_dependent_launches, add_steering, create_tables

Migration = Callable[[Database], None]

MIGRATIONS: tuple[Migration, ...] = (create_tables, add_dependent_launches, add_steering)


def schema_version(db: Database) -> int:
    """The version that `meta` names; 0 for a database without tables. Raises ValueError if it isn't a number."""
    if not db.table("meta").exists():
        return 0
    row = next(iter(list(db.query("SELECT value FROM meta WHERE key = 'schema'"))), None)
    return int(row["value"]) if row else 0


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
