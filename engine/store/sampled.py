"""A bounded part of a kernel's times, for a kernel with so many that all of them take long to read and much room.

Which rows are taken depends on the rows alone. SQLite sorts and counts in its indexes, and what Python sees of the
rows that are passed over comes a page at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import merge, nsmallest
from itertools import islice
from typing import Any, TypeVar

from engine.store.connection import MOST_LEFT_OUT, Connection
from engine.store.reads import timed
from engine.store.rows import a_time, candidate_row, named_row, time_us
from engine.vocabulary import Regime, Schedule

PAGE = 10_000
"""Rows that are fetched at once of those that are passed over."""
MARKS = 500
"""Values of one IN, below SQLite's bound on parameters."""

_OK = f"kernel_key = ? AND context_key = ? AND status = 'ok' AND {a_time('median_us')}"
_DEPLOYED = f"kernel_key = ? AND context_key = ? AND deploy_status = 'ok' AND {a_time('deploy_us')}"

_RANKED = "SELECT CAST(schedule AS BLOB), median_us, id FROM measurement"
_DEPLOY = "SELECT CAST(schedule AS BLOB), deploy_us, key FROM node"

T = TypeVar("T")
Place = tuple[str, str]
"""Kernel and context."""
Text = bytes
"""A schedule as it is stored; SQLite orders texts by their bytes, and bytes need be no UTF-8."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """`times` are us of some candidates, each its deploy time where there is one, else its ranking time; `of` says out
    of how many timed candidates they are."""

    times: dict[Schedule, float]
    of: int


@dataclass(frozen=True, slots=True)
class _Time:
    """A row that was not looked into yet. `number` is its id or its node's key."""

    text: Text
    us: float
    regime: Regime
    number: int | str


def timed_count(connection: Connection, place: Place) -> int:
    """How many rows of a kernel and context have a time, in either regime."""
    deployed = int(connection.tuples(f"SELECT count(*) FROM node WHERE {_DEPLOYED}", place)[0][0])
    return _ranked_count(connection, place) + deployed


def _ranked_count(connection: Connection, place: Place) -> int:
    return int(connection.tuples(f"SELECT count(*) FROM measurement WHERE {_OK}", place)[0][0])


def timed_evenly(connection: Connection, place: Place, most: int) -> Sampled:
    """At most `most` candidates and the fastest deploy row, evenly spread over all when they are ordered by their
    ranking times; the fastest is one of them."""
    count = _ranked_count(connection, place)
    if count <= most:
        found = timed(connection, *place)
        return Sampled(found, len(found))
    _name_unreadable(connection, place)
    # every place p with p * most % count < most: `most` of them, the first among them (Bresenham 1965)
    spread = (
        "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY median_us) - 1 AS place FROM measurement "
        f"WHERE {_OK}) WHERE place * ? % ? < ?"
    )
    numbers = [int(row[0]) for row in connection.tuples(spread, (*place, most, count, most))]
    rows = [row for some in _by_marks(numbers) for row in _ranked(connection, place, "id", some)]
    found = dict(_read(connection, place[0], rows))
    texts = [row.text for row in rows]
    deployed = [row for some in _by_marks(texts) for row in _deployed(connection, place, some)]
    best = f"{_DEPLOY} WHERE {_DEPLOYED} ORDER BY deploy_us LIMIT 1"
    deployed += _times(connection.tuples(best, place), Regime.DEPLOY)
    return Sampled(found | dict(_read(connection, place[0], deployed)), count)


def timed_sample(connection: Connection, place: Place, fastest: int, others: int) -> dict[Schedule, float]:
    """All candidates that were timed, as `reads.timed` has them, but of more than `fastest` + `others` the fastest so
    many, and so many others, evenly spread in the order of their texts."""
    deployed = {row.text: row for row in _deployed(connection, place)}
    count = _ranked_count(connection, place)
    both = {row.text for some in _by_marks(deployed) for row in _ranked(connection, place, "schedule", some)}
    alone = [row for text, row in deployed.items() if text not in both]
    rest = count + len(alone) - fastest
    if rest <= others:
        return timed(connection, *place)
    _name_unreadable(connection, place)
    first = f"{_RANKED} WHERE {_OK} ORDER BY median_us, schedule LIMIT ?"
    ranked = _times(connection.tuples(first, (*place, fastest + len(both))), Regime.RANKING)
    candidates = [*(row for row in ranked if row.text not in deployed), *deployed.values()]
    chosen = nsmallest(fastest, candidates, key=lambda row: (row.us, row.text))
    taken = {row.text for row in chosen}
    step = (rest - 1) / max(others - 1, 1)
    wanted = {*(int(position * step) for position in range(others - 1)), rest - 1}
    alone.sort(key=lambda row: row.text)
    ordered = (
        row for row in merge(_in_order(connection, place), alone, key=lambda row: row.text) if row.text not in taken
    )
    spread = [deployed.get(row.text, row) for position, row in enumerate(ordered) if position in wanted]
    return dict(_read(connection, place[0], [*chosen, *spread]))


def _ranked(connection: Connection, place: Place, column: str, values: Sequence[object]) -> Iterator[_Time]:
    """The ranking rows whose id or schedule is one of the values."""
    mark = "?" if column == "id" else "CAST(? AS TEXT)"
    sql = f"{_RANKED} WHERE {_OK} AND {column} IN ({', '.join(mark for _ in values)})"
    return _times(connection.tuples(sql, (*place, *values)), Regime.RANKING)


def _deployed(connection: Connection, place: Place, texts: Sequence[Text] | None = None) -> Iterator[_Time]:
    """The deploy rows of these schedules, or of all; of several of one schedule the last is the one that counts."""
    only = "" if texts is None else f" AND schedule IN ({', '.join('CAST(? AS TEXT)' for _ in texts)})"
    sql = f"{_DEPLOY} WHERE {_DEPLOYED}{only}"
    rows = connection.tuples(f"{sql} ORDER BY deploy_at DESC, key DESC", (*place, *(texts or ())))
    return _times(rows, Regime.DEPLOY)


def _in_order(connection: Connection, place: Place) -> Iterator[_Time]:
    """Every ranking row in the order of the schedules' texts. No read transaction stays open between pages."""
    sql = f"{_RANKED} WHERE {_OK} AND schedule > CAST(? AS TEXT) ORDER BY schedule LIMIT {PAGE}"
    after = b""
    while rows := connection.tuples(sql, (*place, after)):
        yield from _times(rows, Regime.RANKING)
        after = rows[-1][0]


def _name_unreadable(connection: Connection, place: Place) -> None:
    """Keep a sentence about each row whose time is none, as for a kernel whose rows are all read."""
    of_kernel = f"kernel_key = ? AND context_key = ? AND NOT {a_time('{0}')} LIMIT {MOST_LEFT_OUT}"
    ranked = f"{_RANKED} WHERE status = 'ok' AND {of_kernel.format('median_us')}"
    deployed = f"{_DEPLOY} WHERE deploy_status = 'ok' AND {of_kernel.format('deploy_us')}"
    for sql, regime in ((ranked, Regime.RANKING), (deployed, Regime.DEPLOY)):
        for _ in _read(connection, place[0], _times(connection.tuples(sql, place), regime)):
            pass


def _by_marks(values: Iterable[T]) -> Iterator[tuple[T, ...]]:
    left = iter(values)
    while some := tuple(islice(left, MARKS)):
        yield some


def _times(rows: Iterable[tuple[Any, ...]], regime: Regime) -> Iterator[_Time]:
    return (_Time(text, us, regime, number) for text, us, number in rows)


def _read(connection: Connection, kernel: str, rows: Iterable[_Time]) -> Iterator[tuple[Schedule, float]]:
    return connection.readable(rows, partial(_schedule_and_us, kernel))


def _schedule_and_us(kernel: str, row: _Time) -> tuple[Schedule, float]:
    with named_row(candidate_row(row.regime, row.number, kernel)):
        return Schedule.from_key(row.text.decode()), time_us(row.us)
