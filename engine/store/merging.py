"""Two databases become one that knows what both knew: nothing is lost, nothing stands twice.

Rows that name the same thing are joined by rules that don't ask which database came first, so that merging A into B
gives what merging B into A gives (up to the numbers that rows are counted by), and merging again changes nothing:
- a measurement that is ok wins over one that failed, then the first that was taken, as where one database is written;
- a search-tree node keeps the tree as it was seen last, and of its deploy rows the first that is ok;
- a run that both hold keeps the further one's row, and every event of both journals;
- of two pins in force in one place the later one stays in force, and a pin that was ended in one is ended.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.ir import GraphError
from engine.ir.json_form import kernel_from_json
from engine.store.checking import check_database
from engine.store.connection import Connection, open_connection
from engine.store.copies import copy_database
from engine.store.database_file import database_path
from engine.store.errors import SQLITE_ERRORS, StoreError, explain
from engine.store.merging_runs import merge_events, merge_groupings

OTHER = "other"
"""The name under which the database that is merged in is attached."""


class Unwritten(StoreError):
    """The merged database, or what it is made in, can't be written."""

    is_output = True


@dataclass(frozen=True, slots=True)
class Merged:
    """What one source brought: rows that the merged database did not have."""

    source: Path
    runs: int
    kernels: int
    candidates: int
    pins: int
    active_pins: int
    """Pins in force in the merged database after this source; of two in one place the later one is."""


def merge_databases(sources: Sequence[Path], into: Path | None = None) -> list[Merged]:
    """Merge the sources, in one new file `into`, or all after the first into the first, which is then changed.

    A source is only read, from a read-only folder too; an older schema is upgraded in a copy, a newer one and a damaged
    file refused, each by the name that it was given. The result appears whole or not at all.

    Raises StoreError, one with `is_output` where the result or what it is made in can't be written.
    """
    with tempfile.TemporaryDirectory(prefix="emmy-merge-") as folder, _told_of_what_was_named(Path(folder), into):
        for source in sources:
            check_database(source)
        copies = [copy_database(source, Path(folder) / f"{number}.db") for number, source in enumerate(sources)]
        if into is None:
            return _merge_all(Path(sources[0]), sources[1:], copies[1:], Path(sources[0]))
        if database_path(into).exists():
            raise StoreError(f"{into} exists already; name a new file, or merge into it by naming it first")
        whole = Path(folder) / "whole.db"
        merged = _merge_all(whole, sources, copies, into)
        copy_database(whole, into)
        return merged


@contextmanager
def _told_of_what_was_named(folder: Path, into: Path | None) -> Iterator[None]:
    """What can't be written in the block is told by the names that people gave, and not by those of copies."""
    try:
        yield
    except StoreError as error:
        cause = error.__cause__
        unwritten = isinstance(cause, OSError) or str(getattr(cause, "sqlite_errorname", "")).startswith("SQLITE_IOERR")
        if str(folder) in str(error):
            raise Unwritten(
                f"copies of the databases can't be written to {folder.parent} ({cause}): make room there, or let TMPDIR"
                " name another folder"
            ) from error
        if unwritten and into is not None and str(into) in str(error):
            raise Unwritten(f"{into} can't be written ({cause}): make room there, or name another file") from error
        raise


def _merge_all(path: Path, sources: Sequence[Path], copies: Sequence[Path], shown: Path) -> list[Merged]:
    """Merge the copies into `path`, in one transaction; `shown` is the name that a sentence gives it."""
    connection = open_connection(path, read_only=False, create=True)
    connection.path = shown
    try:
        conn = connection.db.conn
        conn.execute("PRAGMA foreign_keys = OFF").fetchall()
        attached = [f"{OTHER}{number}" for number in range(len(sources))]
        for name, copy in zip(attached, copies, strict=True):
            conn.execute(f"ATTACH ? AS {name}", (str(copy),))
        with connection.transaction():
            return [_merge(connection, name, source) for name, source in zip(attached, sources, strict=True)]
    except SQLITE_ERRORS as error:
        raise explain(error, shown) from error
    finally:
        connection.close()


def _merge(connection: Connection, other: str, source: Path) -> Merged:
    conn = connection.db.conn
    before = _counts(conn)
    shared = [row[0] for row in conn.execute(f"SELECT id FROM main.run WHERE id IN (SELECT id FROM {other}.run)")]
    for table, merge in _RULES.items():
        merge(conn, other, table)
    merge_groupings(conn, other, shared)
    merge_events(conn, other, shared)
    for (table,) in conn.execute("SELECT name FROM main.sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        if table not in _RULES and table not in _BY_HAND and _holds(conn, other, table):
            (_merge_set if _numbered(conn, table) else _merge_smallest)(conn, other, table)
    _end_double_pins(conn)
    runs, kernels, candidates, pins = (new - old for new, old in zip(_counts(conn), before, strict=True))
    active = int(conn.execute("SELECT count(*) FROM pin WHERE removed_at IS NULL").fetchone()[0])
    return Merged(source, runs, kernels, candidates, pins, active)


def _counts(conn: Any) -> list[int]:
    deployed = "(SELECT count(*) FROM node WHERE deploy_status IS NOT NULL)"
    counted = ("count(*) FROM run", "count(*) FROM kernel", f"count(*) + {deployed} FROM measurement")
    return [int(conn.execute(f"SELECT {what}").fetchone()[0]) for what in (*counted, "count(*) FROM pin")]


def _holds(conn: Any, schema: str, table: str) -> bool:
    sql = f"SELECT 1 FROM {schema}.sqlite_master WHERE type = 'table' AND name = ?"
    return conn.execute(sql, (table,)).fetchone() is not None and not table.startswith("sqlite_")


def _columns(conn: Any, table: str) -> list[str]:
    return [row[1] for row in conn.execute(f'PRAGMA main.table_info("{table}")')]


def _key(conn: Any, table: str) -> list[str]:
    return [row[1] for row in sorted(conn.execute(f'PRAGMA main.table_info("{table}")'), key=lambda r: r[5]) if row[5]]


def _numbered(conn: Any, table: str) -> bool:
    """Whether its rows are known by a number that only counts them."""
    return _key(conn, table) == ["id"] and any(
        row[1] == "id" and row[2].upper() == "INTEGER" for row in conn.execute(f'PRAGMA main.table_info("{table}")')
    )


def _row(table: str, columns: Sequence[str]) -> str:
    """SQL of a row as a value that is ordered; NULL comes last."""
    return "(" + ", ".join(f"coalesce({table}.\"{column}\", x'ff')" for column in columns) + ")"


def _upsert(conn: Any, other: str, table: str, key: Sequence[str], columns: Sequence[str], update: str) -> None:
    names = ", ".join(f'"{column}"' for column in columns)
    keys = ", ".join(f'"{column}"' for column in key)
    conn.execute(
        f'INSERT INTO main."{table}" ({names}) SELECT {names} FROM {other}."{table}" WHERE true '
        f"ON CONFLICT ({keys}) DO UPDATE SET {update}"
    )


def _taken(columns: Sequence[str]) -> str:
    return ", ".join(f'"{column}" = excluded."{column}"' for column in columns)


def _merge_smallest(conn: Any, other: str, table: str) -> None:
    """Rows of one key that differ: the smaller one stays, which is the same one from both sides."""
    columns, key = _columns(conn, table), _key(conn, table)
    rest = [column for column in columns if column not in key]
    if not rest or not key:
        names = ", ".join(f'"{column}"' for column in columns)
        conn.execute(f'INSERT OR IGNORE INTO main."{table}" ({names}) SELECT {names} FROM {other}."{table}"')
        return
    smaller = f"{_row('excluded', rest)} < {_row(table, rest)}"
    _upsert(conn, other, table, key, columns, f"{_taken(rest)} WHERE {smaller}")


def _merge_set(conn: Any, other: str, table: str) -> None:
    """Rows that are numbered only: each content once. What was ended in one database is ended, at the later moment."""
    columns = [column for column in _columns(conn, table) if column not in ("id", "removed_at")]
    names = ", ".join(f'"{column}"' for column in columns)
    same = " AND ".join(f'main."{table}"."{column}" IS o."{column}"' for column in columns)
    if "removed_at" in _columns(conn, table):
        conn.execute(
            f'UPDATE main."{table}" SET removed_at = max(coalesce("{table}".removed_at, o.removed_at), o.removed_at) '
            f'FROM {other}."{table}" AS o WHERE {same} AND o.removed_at IS NOT NULL'
        )
        names += ", removed_at"
    conn.execute(
        f'INSERT INTO main."{table}" ({names}) SELECT {names} FROM {other}."{table}" AS o '
        f'WHERE NOT EXISTS (SELECT 1 FROM main."{table}" WHERE {same}) ORDER BY o.id'
    )


def _merge_runs(conn: Any, other: str, table: str) -> None:
    columns = _columns(conn, table)
    rest = [column for column in columns if column != "id"]

    def further(name: str) -> str:
        return f"{name}.ended_at IS NULL, -coalesce({name}.ended_at, 0), {_row(name, rest)[1:-1]}"

    _upsert(conn, other, table, ["id"], columns, f"{_taken(rest)} WHERE ({further('excluded')}) < ({further(table)})")


def _merge_measurements(conn: Any, other: str, table: str) -> None:
    columns = [column for column in _columns(conn, table) if column != "id"]
    key = ["kernel_key", "context_key", "schedule"]
    rest = [column for column in columns if column not in key]

    def sooner(name: str) -> str:
        return f"{name}.status IS NOT 'ok', {_row(name, ['measured_at', *rest])[1:-1]}"

    _upsert(conn, other, table, key, columns, f"{_taken(rest)} WHERE ({sooner('excluded')}) < ({sooner(table)})")


def _merge_nodes(conn: Any, other: str, table: str) -> None:
    columns = _columns(conn, table)
    deployed = [column for column in columns if column == "schedule" or column.startswith("deploy_")]
    tree = [column for column in columns if column not in ("key", *deployed)]

    def sooner(name: str) -> str:
        return f"{name}.deploy_status IS NOT 'ok', {_row(name, ['deploy_at', *deployed])[1:-1]}"

    later = f"{_row('excluded', ['updated_at', 'seq', *tree])} > {_row(table, ['updated_at', 'seq', *tree])}"
    better = (
        f"excluded.deploy_status IS NOT NULL AND ({table}.deploy_status IS NULL "
        f"OR ({sooner('excluded')}) < ({sooner(table)}))"
    )
    chosen = [(column, later) for column in tree] + [(column, better) for column in deployed]
    update = ", ".join(
        f'"{column}" = CASE WHEN {when} THEN excluded."{column}" ELSE {table}."{column}" END' for column, when in chosen
    )
    _upsert(conn, other, table, ["key"], columns, update)


def _merge_kernels(conn: Any, other: str, table: str) -> None:
    """As `_merge_smallest`, but a body that is the kernel of its key wins over one that isn't."""
    keys = conn.execute(
        f"SELECT m.key, m.body, o.body FROM main.kernel AS m JOIN {other}.kernel AS o ON o.key = m.key "
        "WHERE m.body IS NOT o.body"
    ).fetchall()
    _merge_smallest(conn, other, table)
    for key, *bodies in keys:
        sound = [body for body in bodies if _is_kernel(key, body)]
        if len(sound) == 1:
            conn.execute("UPDATE main.kernel SET body = ? WHERE key = ?", (sound[0], key))


def _is_kernel(key: str, body: object) -> bool:
    with suppress(GraphError):
        return isinstance(body, str) and kernel_from_json(body).key == key
    return False


def _end_double_pins(conn: Any) -> None:
    conn.execute(
        "UPDATE pin SET removed_at = newer.at FROM pin AS newer WHERE pin.removed_at IS NULL AND newer.removed_at IS "
        "NULL AND newer.kernel_key = pin.kernel_key AND newer.context_key = pin.context_key AND "
        "(coalesce(newer.at, 0), newer.schedule, coalesce(newer.author, ''), coalesce(newer.note, '')) > "
        "(coalesce(pin.at, 0), pin.schedule, coalesce(pin.author, ''), coalesce(pin.note, ''))"
    )


_RULES: dict[str, Callable[[Any, str, str], None]] = {
    "context": _merge_smallest,
    "kernel": _merge_kernels,
    "run": _merge_runs,
    "measurement": _merge_measurements,
    "node": _merge_nodes,
}
_BY_HAND = frozenset({"meta", "grouping", "grouping_kernel", "event"})
