"""Why candidates failed: clusters of one normalized cause, and the knob values that set a cluster apart.

A value is worth naming if every row of the cluster has it and few of the candidates that worked have it too: what the
good ones share as well explains nothing, and is subtracted. Where nothing worked, other failures are the comparison.

One cause may hit kernels that have nothing to do with each other. Where all its rows share nothing, they are looked at
family by family, and kernel by kernel where a family shares nothing: what then shares the same values is a cluster,
and all that still shares nothing is one.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.knobs import canonical_position
from engine.store.connection import Connection, Row
from engine.store.errors import BadRow
from engine.store.matching import matching_kernels
from engine.store.rows import candidate_row, read_many_knobs
from engine.store.sampled import PAGE
from engine.vocabulary import KnobValue, Regime

Knobs = dict[str, KnobValue]
Values = tuple[Any, ...]
PART_ROWS = 3
"""From so many rows on a part of a cause may be a cluster: two rows of one kernel share something by chance."""
SHARED_ELSEWHERE = 0.5
"""From this share on of the comparison, a value is one that the others share as well."""
Place = tuple[str, str]
"""A kernel key and a context key: candidates are compared within it."""


@dataclass(frozen=True, slots=True)
class SharedKnob:
    """A knob value of every row of a cluster. `elsewhere` is the share, 0 to 1, of the comparison that has it too."""

    name: str
    value: KnobValue
    elsewhere: float


@dataclass(frozen=True, slots=True)
class FailedRow:
    kernel: str
    label: str
    schedule: Knobs
    kind: str
    regime: str


@dataclass(frozen=True, slots=True)
class KernelFailures:
    """A cluster's rows of one kernel: how many, and the full cause of the first of them."""

    kernel: str
    label: str
    shape: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class FailureCluster:
    """Failed candidates with the same normalized cause; several clusters have it where its kernels share nothing.

    `shared` are the values that set the cluster apart, the most telling first; empty for a single row, about which
    nothing can be said, and `note` then says so. `lift` is how much likelier this failure is among candidates with
    all the shared values than among all candidates of these kernels (1 = not at all). `example` is one full cause, that
    of the first kernel; `by_kernel` has one of each, the kernel with the most rows first.
    """

    cause: str
    count: int
    kinds: tuple[str, ...]
    kernels: tuple[str, ...]
    shared: tuple[SharedKnob, ...]
    lift: float
    note: str
    example: str
    rows: tuple[FailedRow, ...]
    by_kernel: tuple[KernelFailures, ...] = ()


@dataclass(frozen=True, slots=True)
class _Failed:
    place: Place
    knobs: Knobs
    kind: str
    rowid: int
    regime: Regime


_Numbers = dict[str, dict[tuple[type, KnobValue], int]]
"""By knob, a number from 1 on for each value of a failed row. The type counts: True and 1 are two values."""


class _Group:
    """Candidates to compare with, a column of `numbers` a knob: as dictionaries a million would take 600 MB.

    They come in `pages`. Values that no failed row has are all one: 0.
    """

    def __init__(self, pages: Iterable[Sequence[Knobs]], numbers: _Numbers) -> None:
        self._numbers = numbers
        self._columns = {name: array("i") for name in numbers}
        self._size = 0
        for page in pages:
            self._size += len(page)
            for name, column in self._columns.items():
                values: list[Any] = [knobs.get(name) for knobs in page]
                column.extend(map(numbers[name].get, zip(map(type, values), values, strict=True), repeat(0)))

    def __len__(self) -> int:
        return self._size

    def having(self, name: str, value: KnobValue) -> NDArray[np.bool_]:
        """One truth value a member."""
        column = np.frombuffer(self._columns[name], dtype=np.intc)
        return np.equal(column, self._numbers[name][type(value), value], dtype=np.bool_)

    def having_all(self, shared: Sequence[SharedKnob]) -> int:
        return int(np.logical_and.reduce([self.having(knob.name, knob.value) for knob in shared]).sum())


Compared = Sequence[_Group]
Compare = Callable[[Sequence[_Failed]], Compared]

_RANKING_FAILED = (
    "SELECT id, schedule, context_key, failure_kind, normalized_cause, id FROM measurement "
    "WHERE status = 'failed' AND kernel_key = ? ORDER BY id"
)
_DEPLOY_FAILED = (
    "SELECT key, schedule, context_key, deploy_failure, deploy_normalized_cause, rowid FROM node "
    "WHERE deploy_status IS NOT NULL AND deploy_status = 'failed' AND kernel_key = ? ORDER BY rowid"
)
_WORKED = (
    "SELECT id, schedule, CAST(schedule AS BLOB) FROM measurement WHERE kernel_key = ? AND context_key = ? "
    f"AND status = 'ok' AND schedule > CAST(? AS TEXT) ORDER BY schedule LIMIT {PAGE}"
)


def failure_clusters(connection: Connection, kernel_text: str) -> tuple[FailureCluster, ...]:
    """Largest cluster first; equal sizes by cause."""
    kernels = matching_kernels(connection, kernel_text)
    clusters: dict[str, list[_Failed]] = defaultdict(list)
    for cause, failed in _failed(connection, kernels):
        clusters[cause].append(failed)
    places = {failed.place for rows in clusters.values() for failed in rows}
    numbers: _Numbers = defaultdict(dict)
    for failed in chain.from_iterable(clusters.values()):
        for name, value in failed.knobs.items():
            numbers[name].setdefault((type(value), value), len(numbers[name]) + 1)
    worked = {place: _Group(_worked(connection, place), numbers) for place in sorted(places)}
    sizes = Counter(failed.place for rows in clusters.values() for failed in rows)
    parts = [
        (cause, part, groups)
        for cause, rows in clusters.items()
        for part, groups in _parts(
            rows, kernels, partial(_comparison, cause, clusters=clusters, worked=worked, numbers=numbers)
        )
    ]
    return tuple(
        _cluster(cause, rows, groups, kernels, sizes, _by_kernel(connection, rows, kernels))
        for cause, rows, groups in sorted(parts, key=lambda part: (-len(part[1]), part[0]))
    )


def _parts(rows: list[_Failed], kernels: dict[str, Row], compare: Compare) -> Iterator[tuple[list[_Failed], Compared]]:
    """The rows of one cause in one or several clusters, each with what it is compared with."""

    def telling(part: Sequence[_Failed]) -> tuple[tuple[str, KnobValue], ...]:
        found = _telling(part, compare(part)) if len(part) >= PART_ROWS else ()
        return tuple((knob.name, knob.value) for knob in found)

    whole = compare(rows)
    if len({failed.place[0] for failed in rows}) == 1 or _telling(rows, whole):
        yield rows, whole
        return
    alike: dict[tuple[tuple[str, KnobValue], ...], list[_Failed]] = defaultdict(list)
    for family in _grouped(rows, lambda failed: str(kernels[failed.place[0]]["family"])):
        shared = telling(family)
        for part in (family,) if shared else _grouped(family, lambda failed: failed.place[0]):
            alike[shared or telling(part)] += part
    for part in alike.values():
        yield part, compare(part)


def _grouped(rows: Sequence[_Failed], name: Callable[[_Failed], str]) -> list[list[_Failed]]:
    """In the order of the rows."""
    found: dict[str, list[_Failed]] = defaultdict(list)
    for failed in rows:
        found[name(failed)].append(failed)
    return list(found.values())


def _by_kernel(connection: Connection, rows: Sequence[_Failed], kernels: dict[str, Row]) -> tuple[KernelFailures, ...]:
    """In the order of the rows."""
    found = []
    for its_rows in _grouped(rows, lambda failed: failed.place[0]):
        key = its_rows[0].place[0]
        label = str(kernels[key]["label"] or kernels[key]["family"] or key)
        shape = str(kernels[key]["shape"] or "")
        found.append(KernelFailures(key, label, shape, len(its_rows), _example(connection, its_rows[0])))
    return tuple(found)


def _failed(connection: Connection, kernels: Iterable[str]) -> Iterator[tuple[str, _Failed]]:
    """Every failed candidate with its normalized cause; what many rows say is kept once."""
    places: dict[Place, Place] = {}
    for key in kernels:
        for regime, sql in ((Regime.RANKING, _RANKING_FAILED), (Regime.DEPLOY, _DEPLOY_FAILED)):
            rows = connection.tuples(sql, (key,))
            for (_, _, context, kind, cause, rowid), knobs in _with_knobs(connection, rows, regime, key):
                place = places.setdefault((key, context), (key, context))
                yield cause or "", _Failed(place, knobs, sys.intern(kind or ""), rowid, regime)


def _worked(connection: Connection, place: Place) -> Iterator[list[Knobs]]:
    """What worked there, a page at a time: no read transaction stays open between pages."""
    after = b""
    while rows := connection.tuples(_WORKED, (*place, after)):
        yield [knobs for _, knobs in _with_knobs(connection, rows, Regime.RANKING, place[0])]
        after = rows[-1][2]


def _with_knobs(
    connection: Connection, rows: Sequence[Values], regime: Regime, kernel: str
) -> Iterator[tuple[Values, Knobs]]:
    """The rows, each of its number, its schedule and more, with their knobs; what can't be read is left out."""
    found = read_many_knobs([row[1] for row in rows], lambda place: candidate_row(regime, rows[place][0], kernel))
    for row, knobs in zip(rows, found, strict=True):
        if isinstance(knobs, BadRow):
            connection.leave_out(knobs)
        else:
            yield row, knobs


def _example(connection: Connection, failed: _Failed) -> str:
    column, table, key = (
        ("cause", "measurement", "id") if failed.regime is Regime.RANKING else ("deploy_cause", "node", "rowid")
    )
    return str(connection.tuples(f"SELECT {column} FROM {table} WHERE {key} = ?", (failed.rowid,))[0][0] or "")


def _comparison(
    cause: str,
    rows: Sequence[_Failed],
    clusters: dict[str, list[_Failed]],
    worked: dict[Place, _Group],
    numbers: _Numbers,
) -> list[_Group]:
    """What worked in the cluster's places; where nothing did, what failed there for another cause."""
    here = {failed.place for failed in rows}
    good = [worked[place] for place in sorted(here) if len(worked[place])]
    if good:
        return good
    others = [other for its_cause, other in clusters.items() if its_cause != cause]
    bad = [failed.knobs for other in others for failed in other if failed.place in here]
    return [_Group([bad], numbers)] if bad else []


def _cluster(
    cause: str,
    rows: Sequence[_Failed],
    comparison: Sequence[_Group],
    kernels: dict[str, Row],
    sizes: Counter[Place],
    by_kernel: tuple[KernelFailures, ...],
) -> FailureCluster:
    shared = _telling(rows, comparison) if len(rows) > 1 else ()
    hit = dict.fromkeys(failed.place[0] for failed in rows)
    return FailureCluster(
        cause=cause,
        count=len(rows),
        kinds=tuple(dict.fromkeys(failed.kind for failed in rows)),
        kernels=tuple(kernels[key]["label"] or key for key in hit),
        shared=shared,
        lift=_lift(rows, comparison, shared),
        note=_note(rows, comparison, shared, sizes),
        example=by_kernel[0].example,
        by_kernel=tuple(sorted(by_kernel, key=lambda one: -one.count)),
        rows=tuple(
            FailedRow(failed.place[0], kernels[failed.place[0]]["label"], failed.knobs, failed.kind, str(failed.regime))
            for failed in rows
        ),
    )


def _telling(rows: Sequence[_Failed], comparison: Sequence[_Group]) -> tuple[SharedKnob, ...]:
    common = dict(rows[0].knobs)
    for failed in rows:
        for name in [name for name, value in common.items() if not _has(failed.knobs, name, value)]:
            del common[name]
    if not comparison:
        return ()
    size = sum(len(group) for group in comparison)
    found = [
        SharedKnob(name, value, sum(int(group.having(name, value).sum()) for group in comparison) / size)
        for name, value in common.items()
    ]
    telling = [knob for knob in found if knob.elsewhere < SHARED_ELSEWHERE]
    return tuple(sorted(telling, key=lambda knob: (knob.elsewhere, canonical_position(knob.name, knob.value))))


def _has(knobs: Knobs, name: str, value: KnobValue) -> bool:
    """The type counts: True and 1 are equal in Python and two values of a knob."""
    found = knobs.get(name)
    return found == value and type(found) is type(value)


def _lift(rows: Sequence[_Failed], comparison: Sequence[_Group], shared: Sequence[SharedKnob]) -> float:
    if not shared:
        return 1.0
    alike = sum(group.having_all(shared) for group in comparison)
    return (len(rows) + sum(len(group) for group in comparison)) / (len(rows) + alike)


def _note(
    rows: Sequence[_Failed], comparison: Sequence[_Group], shared: Sequence[SharedKnob], sizes: Counter[Place]
) -> str:
    if len(rows) == 1:
        return "a single failure: nothing to compare it with"
    if not comparison and len(rows) == sum(sizes[place] for place in {failed.place for failed in rows}):
        return "every candidate of these kernels failed this way: look at the cause, not at the knobs"
    if not shared:
        return "no knob value sets these apart from the candidates that worked"
    return ""
