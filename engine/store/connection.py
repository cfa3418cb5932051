"""One open database: how it opens in every state a file can be in, and the one door that all SQL goes through.

A writer gets WAL (readers never wait for it, and it never waits for them), synchronous NORMAL (a killed process loses
nothing that was committed) and foreign keys. A reader never writes a byte of the database.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sqlite_utils import Database

from engine.store.cut_short import check_length
from engine.store.database_file import check_file, database_path
from engine.store.errors import (
    SQLITE_ERRORS,
    BadRow,
    NotEmmys,
    StoreLocked,
    StoreReadOnly,
    explain,
    is_full,
    is_no_text,
    no_room,
)
from engine.store.guest import Seen, has_log_and_index, is_guest, is_shut, log_of, seen_now, take_back_log
from engine.store.known_schema import check_owner, check_tables, known_version
from engine.store.migrations import migrate
from engine.store.private_copy import copied, is_at_rest, lacks_log
from engine.store.schema import SCHEMA
from engine.store.typed import NoText

Row = dict[str, Any]
Parameters = Sequence[object] | Mapping[str, object]
S = TypeVar("S")
T = TypeVar("T")

BUSY_S = 10.0
"""How long a writer waits for another writer; a transaction here lasts well under a millisecond."""
WORD_S = 0.8
"""How long it waits before whoever asked to be told is told of it."""

MOST_LEFT_OUT = 1000
"""Sentences about rows that can't be read that are kept: nobody reads more."""

_CLOSED, _FULL, _NO_INDEX = "read-only folder", "full disk", "no room for its index"
REST_TIMES = 4
"""A copy that took long is kept for so many times as long."""
STALE_S = 10.0
"""How old what is shown may get, while no copy can be made, before it is said."""


@dataclass(slots=True)
class Connection:
    """`frozen_because` says why what is shown is the file as it was when it was opened; "" where it isn't.

    `waiting` is called once a wait for another process's lock has lasted WORD_S. `holding` is called once a transaction
    has the lock and before it writes anything; what it raises ends that transaction. `left_out` has the error of each
    row that was met and can't be read by its sentence, in order.
    """

    path: Path
    db: Database
    read_only: bool
    frozen_because: str = ""
    waiting: Callable[[], None] | None = None
    holding: Callable[[], None] | None = None
    left_out: dict[str, BadRow] = field(default_factory=dict, repr=False)
    _copy: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)
    _seen: Seen | None = field(default=None, repr=False)
    """The state of the file for which this is the way to read it; None where it is for every one."""
    _reopened: int = field(default=0, repr=False)
    _opened_at: float = field(default_factory=time.monotonic, repr=False)
    _looks_at: float = field(default=0.0, repr=False)

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """All rows at once, so that no read transaction stays open and lets the write-ahead log grow."""
        names, found = self._read(sql, parameters)
        return [dict(zip(names, row, strict=True)) for row in found]

    def tuples(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """Like `rows`, for results of many thousand rows."""
        return self._read(sql, parameters)[1]

    def _read(self, sql: str, parameters: Parameters) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Names of the columns, and the rows. One text that is no UTF-8 stops SQLite's module: then it is read anew,
        with a NoText there, which is told by whoever makes a record of that row."""
        self._look_again()
        try:
            try:
                cursor = self.db.conn.execute(sql, parameters)
                found = cursor.fetchall()
            except (sqlite3.OperationalError, UnicodeDecodeError) as error:
                if not is_no_text(error):
                    raise
                self.db.conn.text_factory = NoText.or_text
                cursor = self.db.conn.execute(sql, parameters)
                found = cursor.fetchall()
        except SQLITE_ERRORS as error:
            raise explain(error, self.path, reading=True) from error
        return [column[0] for column in cursor.description or ()], found

    def first(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return next(iter(self.rows(sql, parameters)), None)

    def readable(self, rows: Iterable[S], read: Callable[[S], T]) -> Iterator[T]:
        """What `read` makes of each row; one that raises BadRow is left out, and its sentence is kept."""
        for row in rows:
            try:
                yield read(row)
            except BadRow as error:
                self.leave_out(error)

    def leave_out(self, error: BadRow) -> None:
        """Keep the sentence about a row that is left out, up to MOST_LEFT_OUT of them."""
        if len(self.left_out) < MOST_LEFT_OUT:
            self.left_out.setdefault(str(error), error)

    def first_readable(self, sql: str, parameters: Parameters, read: Callable[[Row], T]) -> T | None:
        """What `read` makes of the first row that can be read; the others are fetched only where the first can't be."""
        for limit in (" LIMIT 1", ""):
            rows = self.rows(sql + limit, parameters)
            for found in self.readable(rows, read):
                return found
            if not rows:
                break
        return None

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """All or nothing, committed on leaving. Raises StoreReadOnly on a reader, else what `explain` makes of it."""
        if self.read_only:
            raise StoreReadOnly(f"{self.path} was opened for reading only; open it again for writing")
        before = self.db.conn.total_changes
        try:
            _patiently(self.db.conn, lambda: self.db.conn.execute("BEGIN IMMEDIATE"), self.waiting)
            if self.holding is not None:
                self.holding()
            yield self.db
            _patiently(self.db.conn, lambda: self.db.conn.execute("COMMIT"), self.waiting)
        except SQLITE_ERRORS as error:
            self._roll_back()
            said = explain(error, self.path)
            if isinstance(said, StoreLocked):
                said.partly = before > 0
            raise said from error
        except BaseException:
            self._roll_back()
            raise

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Reads inside see one state of the database. Keep it short."""
        self._look_again()
        try:
            self.db.conn.execute("BEGIN")
            yield
        except SQLITE_ERRORS as error:
            raise explain(error, self.path, reading=True) from error
        finally:
            self._roll_back()

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        version = int(self.tuples("PRAGMA data_version")[0][0])
        return (self._reopened << 32) + version

    def thaws(self) -> bool:
        """Whether the disk that was full has space again."""
        return self.frozen_because == _FULL and not is_full(self.path)

    def close(self) -> None:
        """A writer leaves everything in the one file, also while others read: whoever copies that file has it all."""
        if not self.read_only:
            with suppress(sqlite3.Error):
                self.db.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._let_go()

    def _let_go(self) -> None:
        self.db.close()
        if self._copy is not None:
            self._copy.cleanup()

    def _look_again(self) -> None:
        """Where this is the way to read a file that was written since, read that file as it is now."""
        began = time.monotonic()
        if (
            self._seen is None
            or began < self._looks_at
            or self.db.conn.in_transaction
            or seen_now(self.path) == self._seen
        ):
            return
        try:
            anew = _open_reader(self.path)
        except SQLITE_ERRORS as error:
            raise explain(error, self.path, reading=True) from error
        except StoreLocked:
            self._looks_at = time.monotonic() + REST_TIMES * (time.monotonic() - began)
            if self._copy is None or began - self._opened_at > STALE_S:
                raise
            return
        self._let_go()
        self.db, self._copy, self._seen, self._reopened = anew.db, anew._copy, anew._seen, self._reopened + 1
        self._opened_at = time.monotonic()
        self._looks_at = self._opened_at + REST_TIMES * (self._opened_at - began)

    def _roll_back(self) -> None:
        if self.db.conn.in_transaction:
            with suppress(sqlite3.Error):
                self.db.conn.execute("ROLLBACK")


def open_connection(
    path: Path, *, read_only: bool, create: bool, waiting: Callable[[], None] | None = None
) -> Connection:
    """Raises the StoreError of whatever is wrong with the path, the folder, the file or its schema."""
    path = database_path(path)
    try:
        check_file(path, read_only=read_only, create=create)
        check_length(path)
        connection = _open_reader(path) if read_only else _open_writer(path, waiting)
    except SQLITE_ERRORS as error:
        raise explain(error, path, reading=read_only) from error
    try:
        return _with_current_schema(connection)
    except SQLITE_ERRORS as error:
        connection.close()
        raise explain(error, path, reading=read_only) from error
    except BaseException:
        connection.close()
        raise


def _connect(path: Path, query: str, waiting: Callable[[], None] | None = None) -> Database:
    connection = sqlite3.connect(
        f"{path.as_uri()}?{query}", uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        _patiently(connection, lambda: connection.execute("SELECT count(*) FROM sqlite_master").fetchall(), waiting)
    except BaseException:
        connection.close()
        raise
    return Database(connection, execute_plugins=False)


def _patiently(connection: sqlite3.Connection, step: Callable[[], T], waiting: Callable[[], None] | None) -> T:
    """Take a step that may have to await another process's lock, BUSY_S at most; `waiting` hears of it twice."""
    if waiting is None:
        return step()
    try:
        for seconds in (WORD_S, (BUSY_S - WORD_S) / 2):
            _wait_at_most(connection, seconds)
            try:
                return step()
            except sqlite3.OperationalError as error:
                if not str(error.sqlite_errorname).startswith("SQLITE_BUSY"):
                    raise
            waiting()
        return step()
    finally:
        _wait_at_most(connection, BUSY_S)


def _wait_at_most(connection: sqlite3.Connection, seconds: float) -> None:
    connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}").fetchall()


def _open_writer(path: Path, waiting: Callable[[], None] | None) -> Connection:
    """On a full disk nothing is begun: SQLite would leave an empty file, or an empty log and a broken index, behind."""
    if is_full(path) and not has_log_and_index(path):
        raise no_room(path)
    db = _connect(path, "mode=rwc", waiting)
    try:
        check_owner(db, path, read_only=False)
        _patiently(db.conn, lambda: db.conn.execute("PRAGMA journal_mode = WAL").fetchall(), waiting)
        for pragma in ("synchronous = NORMAL", "foreign_keys = ON"):
            db.conn.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        db.close()
        raise
    return Connection(path, db, read_only=False, waiting=waiting)


def _open_reader(path: Path) -> Connection:
    """As it is written, or where what SQLite needs beside the file can't be made, as it is now.

    On a full disk SQLite would leave a broken index and an empty log behind: it isn't asked to make them there.
    """
    if lacks_log(path):
        seen = seen_now(path)
        if not is_at_rest(path):
            return _private_copy(path)
        return Connection(path, _connect(path, "mode=ro"), read_only=True, _seen=seen)
    if is_guest(path):
        return _open_guest(path)
    if is_full(path) and not has_log_and_index(path):
        return _open_frozen(path, _FULL)
    try:
        return Connection(path, _connect(path, "mode=ro"), read_only=True)
    except sqlite3.OperationalError as error:
        if is_full(path, error):
            return _open_frozen(path, _FULL)
        if str(error.sqlite_errorname).startswith("SQLITE_IOERR_SHM"):  # a quota, of which the free space says nothing
            return _open_frozen(path, _NO_INDEX)
        if not is_shut(error):
            raise
    return _open_frozen(path)


def _open_guest(path: Path) -> Connection:
    """Another user's database: through the files beside it where they are there, else a copy that is kept fresh."""
    if has_log_and_index(path):
        try:
            return Connection(path, _connect(path, "mode=ro&readonly_shm=1"), read_only=True)
        except sqlite3.OperationalError as error:
            if not is_shut(error):
                raise
        take_back_log(path)
    return _private_copy(path)


def _open_frozen(path: Path, because: str = _CLOSED) -> Connection:
    """A WAL database in a folder where SQLite can't make the index file that sharing needs.

    `immutable` reads the file alone; rows that are still in the write-ahead log are reached through a private copy.
    """
    log = log_of(path)
    if not (log.exists() and log.stat().st_size):
        return Connection(path, _connect(path, "immutable=1"), read_only=True, frozen_because=because)
    return _private_copy(path, because)


def _private_copy(path: Path, because: str = "") -> Connection:
    """One without a reason to be frozen is made anew once the file, its log or its journal differs."""
    folder, seen = copied(path)
    try:
        db = _connect(Path(folder.name) / path.name, "mode=rw")
        db.conn.execute("PRAGMA query_only = ON")
    except BaseException:
        folder.cleanup()
        raise
    seen_then = None if because else seen
    return Connection(path, db, read_only=True, frozen_because=because, _copy=folder, _seen=seen_then)


def _with_current_schema(connection: Connection) -> Connection:
    db, path = connection.db, connection.path
    check_owner(db, path, read_only=connection.read_only)
    version = known_version(db, path)
    if version < SCHEMA and connection.read_only:
        if version == 0:
            raise NotEmmys(f"{path} holds no tables yet; `emmy tune --db {shlex.quote(str(path))}` fills it")
        connection = _upgraded_in_memory(connection)
    migrate(connection.db)
    check_tables(connection.db, path)
    return connection


def _upgraded_in_memory(connection: Connection) -> Connection:
    """A reader may not upgrade a file, so it reads an upgraded copy."""
    path = connection.path
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.db.conn.backup(memory)
    connection.close()
    closed = "read-only file" if not os.access(path, os.W_OK) else "opened read-only"
    closed = _CLOSED if not os.access(path.parent, os.W_OK) else closed
    why = f"older schema, {connection.frozen_because or closed}"
    return Connection(path, Database(memory, execute_plugins=False), read_only=True, frozen_because=why)


def upgrade_file(path: Path) -> None:
    """Bring the file of an older Emmy to the current schema, as any writer does; a current one isn't touched.

    Raises the StoreError of a file that is no database of Emmy, or that can't be written.
    """
    path = database_path(path)
    try:
        check_file(path, read_only=True, create=False)
        reader = _open_reader(path)
        try:
            check_owner(reader.db, path, read_only=True)
            older = 0 < known_version(reader.db, path) < SCHEMA
        finally:
            reader.close()
    except SQLITE_ERRORS as error:
        raise explain(error, path, reading=True) from error
    if older:
        open_connection(path, read_only=False, create=False).close()
