"""One open database: how it opens in every state a file can be in, and the one door that all SQL goes through.

A writer gets WAL (readers never wait for it, and it never waits for them), synchronous NORMAL (a killed process loses
nothing that was committed) and foreign keys. A reader never writes a byte of the database.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from engine.store.errors import (
    SQLITE_ERRORS,
    NewerSchema,
    NotADatabase,
    NotEmmys,
    StoreDamaged,
    StoreMissing,
    StoreReadOnly,
    StoreUnreadable,
    explain,
)
from engine.store.migrations import migrate, schema_version
from engine.store.schema import APPLICATION_ID, SCHEMA, TABLES

Row = dict[str, Any]
Parameters = Sequence[object] | Mapping[str, object]

BUSY_S = 10.0
"""How long a writer waits for another writer; a transaction here lasts well under a millisecond."""

_MAGIC = b"SQLite format 3\0"
_CLOSED = "read-only folder"


@dataclass(slots=True)
class Connection:
    """`frozen_because` says why what is shown is the file as it was when it was opened; "" where it isn't."""

    path: Path
    db: Database
    read_only: bool
    frozen_because: str = ""
    _copy: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """All rows at once, so that no read transaction stays open and lets the write-ahead log grow."""
        try:
            cursor = self.db.conn.execute(sql, parameters)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def tuples(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """Like `rows`, for results of many thousand rows."""
        try:
            return self.db.conn.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def first(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return next(iter(self.rows(sql, parameters)), None)

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """All or nothing, committed on leaving. Raises StoreReadOnly on a reader, else what `explain` makes of it."""
        if self.read_only:
            raise StoreReadOnly(f"{self.path} was opened for reading only; open it again for writing")
        try:
            self.db.conn.execute("BEGIN IMMEDIATE")
            yield self.db
            self.db.conn.execute("COMMIT")
        except SQLITE_ERRORS as error:
            self._roll_back()
            raise explain(error, self.path) from error
        except BaseException:
            self._roll_back()
            raise

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Reads inside see one state of the database. Keep it short."""
        try:
            self.db.conn.execute("BEGIN")
            yield
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        finally:
            self._roll_back()

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        return int(self.tuples("PRAGMA data_version")[0][0])

    def close(self) -> None:
        """A writer leaves everything in the one file, also while others read: whoever copies that file has it all."""
        if not self.read_only:
            with suppress(sqlite3.Error):
                self.db.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.db.close()
        if self._copy is not None:
            self._copy.cleanup()

    def _roll_back(self) -> None:
        if self.db.conn.in_transaction:
            with suppress(sqlite3.Error):
                self.db.conn.execute("ROLLBACK")


def open_connection(path: Path, *, read_only: bool, create: bool) -> Connection:
    """Raises the StoreError of whatever is wrong with the path, the folder, the file or its schema."""
    path = path.expanduser().absolute()
    try:
        _check_file(path, read_only=read_only, create=create)
        connection = _open_reader(path) if read_only else _open_writer(path)
    except SQLITE_ERRORS as error:
        raise explain(error, path) from error
    try:
        return _with_current_schema(connection)
    except SQLITE_ERRORS as error:
        connection.close()
        raise explain(error, path) from error
    except BaseException:
        connection.close()
        raise


def is_database(path: Path) -> bool:
    """Whether a file is there that begins as every SQLite database does. One that can't be read is none."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _check_file(path: Path, *, read_only: bool, create: bool) -> None:
    if path.is_dir():
        raise NotADatabase(f"{path} is a folder; name a file in it")
    if not path.exists():
        if read_only or not create:
            raise StoreMissing(f"there is no database at {path}; `emmy tune` writes one, `--demo` shows a recorded one")
        path.parent.mkdir(parents=True, exist_ok=True)
    elif not os.access(path, os.R_OK):
        raise StoreUnreadable(f"{path} can't be read; ask its owner for access, or name another database with --db")
    elif path.stat().st_size:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise NotADatabase(f"{path} is no SQLite database; name another file, and Emmy creates it")
    elif read_only or not create:
        raise NotADatabase(f"{path} is empty; `emmy tune --db {path}` fills it")
    if not read_only:
        for needed in (path, path.parent):
            if needed.exists() and not os.access(needed, os.W_OK):
                what = "the folder" if needed.is_dir() else "the file"
                raise StoreReadOnly(
                    f"{what} {needed} can't be written; make it writable, or name a database elsewhere with --db"
                )


def _connect(path: Path, query: str) -> Database:
    connection = sqlite3.connect(
        f"{path.as_uri()}?{query}", uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except BaseException:
        connection.close()
        raise
    return Database(connection, execute_plugins=False)


def _open_writer(path: Path) -> Connection:
    db = _connect(path, "mode=rwc")
    try:
        _check_owner(db, path)
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
            db.conn.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        db.close()
        raise
    return Connection(path, db, read_only=False)


def _open_reader(path: Path) -> Connection:
    try:
        return Connection(path, _connect(path, "mode=ro"), read_only=True)
    except sqlite3.OperationalError as error:
        if not str(error.sqlite_errorname).startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
            raise
    return _open_frozen(path)


def _open_frozen(path: Path) -> Connection:
    """A WAL database in a folder that can't be written: SQLite may not make the index file that sharing needs.

    `immutable` reads the file alone; rows that are still in the write-ahead log are reached through a private copy.
    """
    log = path.with_name(path.name + "-wal")
    if not (log.exists() and log.stat().st_size):
        return Connection(path, _connect(path, "immutable=1"), read_only=True, frozen_because=_CLOSED)
    folder = tempfile.TemporaryDirectory(prefix="emmy-")
    try:
        for file in (path, log):
            shutil.copyfile(file, Path(folder.name) / file.name)
        db = _connect(Path(folder.name) / path.name, "mode=rw")
        db.conn.execute("PRAGMA query_only = ON")
    except BaseException:
        folder.cleanup()
        raise
    return Connection(path, db, read_only=True, frozen_because=_CLOSED, _copy=folder)


def _check_owner(db: Database, path: Path) -> None:
    """Nothing is written into another program's database, not even a journal mode."""
    if not db.table_names():
        return
    if db.conn.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise NotEmmys(f"{path} is a database of another program; name another file, and Emmy creates it")


def _with_current_schema(connection: Connection) -> Connection:
    db, path = connection.db, connection.path
    _check_owner(db, path)
    version = _known_version(connection)
    if version < SCHEMA and connection.read_only:
        if version == 0:
            raise NotEmmys(f"{path} holds no tables yet; `emmy tune --db {path}` fills it")
        connection = _upgraded_in_memory(connection)
    migrate(connection.db)
    missing = set(TABLES) - set(connection.db.table_names())
    if missing:
        raise StoreDamaged(f"{path} lacks the table {min(missing)!r}; name another database with --db")
    return connection


def _known_version(connection: Connection) -> int:
    """The version of the schema. Raises StoreDamaged where none is named, NewerSchema for one of the future."""
    path = connection.path
    try:
        version = schema_version(connection.db)
    except ValueError:
        raise StoreDamaged(f"{path} names no valid schema version; name another database with --db") from None
    if version > SCHEMA:
        raise NewerSchema(
            f"{path} was written by a newer Emmy (schema {version}, this one knows {SCHEMA}): upgrade emmy-tui"
        )
    return version


def _upgraded_in_memory(connection: Connection) -> Connection:
    """A reader may not upgrade a file, so it reads an upgraded copy."""
    path = connection.path
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.db.conn.backup(memory)
    connection.close()
    closed = "read-only file" if not os.access(path, os.W_OK) else "opened read-only"
    why = f"older schema, {_CLOSED if connection.frozen_because or not os.access(path.parent, os.W_OK) else closed}"
    return Connection(path, Database(memory, execute_plugins=False), read_only=True, frozen_because=why)


def upgrade_file(path: Path) -> None:
    """Bring the file of an older Emmy to the current schema, as any writer does; a current one isn't touched.

    Raises the StoreError of a file that is no database of Emmy, or that can't be written.
    """
    path = path.expanduser().absolute()
    try:
        _check_file(path, read_only=True, create=False)
        reader = _open_reader(path)
        try:
            _check_owner(reader.db, path)
            older = 0 < _known_version(reader) < SCHEMA
        finally:
            reader.close()
    except SQLITE_ERRORS as error:
        raise explain(error, path) from error
    if older:
        open_connection(path, read_only=False, create=False).close()
