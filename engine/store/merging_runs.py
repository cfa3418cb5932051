"""The parts of a run that are numbered within it, merged: its groupings and its journal.

A run belongs to one process, so two databases differ on it only where one was copied while it went on, or where results
of other tuners joined an import in each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

HEALTH = "Health"
"""Of these events a journal keeps the last only."""

EventRow = tuple[str, int, float, str, str]
GroupingRow = dict[str, Any]
Counted = tuple[Any, Any]
"""The key of a kernel, and how often a grouping calls it."""


def merge_groupings(conn: Any, other: str, shared: Sequence[str]) -> None:
    """Groupings of runs that are new here as they are; of a run that both hold, each plan once."""
    marks = ", ".join("?" for _ in shared)
    names = [row[1] for row in conn.execute("PRAGMA main.table_info(grouping)")]
    listed = ", ".join(f'"{name}"' for name in names)
    new = f"FROM {other}.grouping AS o WHERE o.run NOT IN ({marks})"
    conn.execute(f"INSERT OR IGNORE INTO main.grouping ({listed}) SELECT {listed} {new}", shared)
    conn.execute(
        f"INSERT OR IGNORE INTO main.grouping_kernel SELECT k.* FROM {other}.grouping_kernel AS k "
        f"WHERE k.grouping IN (SELECT o.id {new})",
        shared,
    )
    for run in shared:
        _merge_shared_groupings(conn, other, run, names)


def _merge_shared_groupings(conn: Any, other: str, run: str, names: Sequence[str]) -> None:
    own, theirs = (_groupings(conn, schema, run, names) for schema in ("main", other))
    found = {place: [side[place] for side in (own, theirs) if place in side] for place in {**own, **theirs}}
    order = sorted(found, key=lambda place: (max(_position(row) for row, _ in found[place]), place))
    merged: dict[tuple[str, int], tuple[GroupingRow, frozenset[Counted]]] = {}
    last = 0
    for place in order:
        last = max(last + 1, *(_position(row) for row, _ in found[place]))
        fullest = min((row for row, _ in found[place]), key=lambda row: (_unknown(row), repr(sorted(row.items()))))
        kernels = frozenset().union(*(kernels for _, kernels in found[place]))
        merged[place] = ({**fullest, "position": last, "id": f"{run}/{last}"}, kernels)
    if merged == own:
        return
    conn.execute("DELETE FROM main.grouping_kernel WHERE grouping IN (SELECT id FROM grouping WHERE run = ?)", (run,))
    conn.execute("DELETE FROM main.grouping WHERE run = ?", (run,))
    listed, marks = ", ".join(f'"{name}"' for name in names), ", ".join("?" for _ in names)
    for row, kernels in merged.values():
        conn.execute(f"INSERT INTO main.grouping ({listed}) VALUES ({marks})", [row[name] for name in names])
        conn.executemany(
            "INSERT OR IGNORE INTO main.grouping_kernel (grouping, kernel_key, count) VALUES (?, ?, ?)",
            [(row["id"], *one) for one in sorted(kernels, key=repr)],
        )


def _groupings(
    conn: Any, schema: str, run: str, names: Sequence[str]
) -> dict[tuple[str, int], tuple[GroupingRow, frozenset[Counted]]]:
    """The run's groupings with the counts of their kernels, by plan and by how often the plan came before."""
    found: dict[tuple[str, int], tuple[GroupingRow, frozenset[Counted]]] = {}
    seen: Counter[str] = Counter()
    listed = ", ".join(f'"{name}"' for name in names)
    sql = f"SELECT {listed} FROM {schema}.grouping WHERE run = ? ORDER BY position, id"
    for values in conn.execute(sql, (run,)).fetchall():
        row: GroupingRow = dict(zip(names, values, strict=True))
        plan = str(row["plan_key"])
        counted = conn.execute(
            f"SELECT kernel_key, count FROM {schema}.grouping_kernel WHERE grouping = ?", (row["id"],)
        )
        found[plan, seen[plan]] = (row, frozenset((key, count) for key, count in counted))
        seen[plan] += 1
    return found


def _position(row: GroupingRow) -> int:
    return row["position"] if isinstance(row["position"], int) else 0


def _unknown(row: GroupingRow) -> int:
    """How much isn't known: a grouping that was put together says more than one that was entered."""
    return sum(value is None for value in row.values())


def merge_events(conn: Any, other: str, shared: Sequence[str]) -> None:
    """Journals of runs that are new here as they are; of a run that both hold, each event once, in order of time."""
    marks = ", ".join("?" for _ in shared)
    columns = "run, seq, at, kind, body"
    conn.execute(
        f"INSERT OR IGNORE INTO main.event ({columns}) SELECT {columns} FROM {other}.event WHERE run NOT IN ({marks})",
        shared,
    )
    for run in shared:
        own, theirs = (_journal(conn, schema, run) for schema in ("main", other))
        merged = _joined(own, theirs)
        if merged != own:
            conn.execute("DELETE FROM main.event WHERE run = ?", (run,))
            conn.executemany(f"INSERT INTO main.event ({columns}) VALUES (?, ?, ?, ?, ?)", merged)


def _journal(conn: Any, schema: str, run: str) -> list[EventRow]:
    """Ordered; whatever an edited file holds there is read as the column's type."""
    sql = (
        "SELECT run, CAST(seq AS INTEGER), coalesce(CAST(at AS REAL), 0.0), coalesce(CAST(kind AS TEXT), ''), "
        f"coalesce(CAST(body AS TEXT), '') FROM {schema}.event WHERE run = ? ORDER BY seq"
    )
    return [tuple(row) for row in conn.execute(sql, (run,)).fetchall()]


def _joined(own: list[EventRow], theirs: list[EventRow]) -> list[EventRow]:
    """The journal that holds the other if one does; else both, numbered anew where numbers meet."""
    held, brought = (Counter(row[2:] for row in rows if row[3] != HEALTH) for rows in (own, theirs))
    health = max((row for row in (*own, *theirs) if row[3] == HEALTH), key=lambda row: row[2:], default=None)
    if brought <= held and held <= brought:
        base = min(own, theirs)
    elif brought <= held or held <= brought:
        base = own if brought <= held else theirs
    else:
        base = _union(own, theirs)
    rows = [row for row in base if row[3] != HEALTH] + ([health] if health else [])
    return _numbered(rows)


def _union(own: list[EventRow], theirs: list[EventRow]) -> list[EventRow]:
    rows: dict[tuple[tuple[float, str, str], int], EventRow] = {}
    for journal in (own, theirs):
        seen: Counter[tuple[float, str, str]] = Counter()
        for row in journal:
            place = (row[2:], seen[row[2:]])
            seen[row[2:]] += 1
            rows[place] = min(rows.get(place, row), row)
    return sorted(rows.values(), key=lambda row: (row[2], row[1], row[3], row[4]))


def _numbered(rows: list[EventRow]) -> list[EventRow]:
    """Ascending numbers; those that ascend already stay, so that a journal that is whole isn't changed."""
    numbered: list[EventRow] = []
    last = 0
    for run, seq, at, kind, body in sorted(rows, key=lambda row: row[1]) if _ascending(rows) else rows:
        last = max(last + 1, seq)
        numbered.append((run, last, at, kind, body))
    return numbered


def _ascending(rows: list[EventRow]) -> bool:
    """Whether no two rows have one number."""
    return len({row[1] for row in rows}) == len(rows)
