"""The fastest whole graph that a run timed with a kernel in it, found without reading what every graph is made of.

A plan holds all kernels of its program, and reading one takes a tenth of a second: only the plan of the graph that
answers is read, to know that it can be, and what was read once is known by its text from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

from engine.ir.json_form import grouping_from_json
from engine.store.connection import Connection, Row
from engine.store.rows import RowName, named_row, read_schedules, time_or_none
from engine.vocabulary import Schedule


@dataclass(frozen=True, slots=True)
class TimedGraph:
    """A recorded grouping by its id, the schedules it was put together with by structural key, and its time in us;
    `pdl` where it was faster with programmatic dependent launch."""

    id: str
    schedules: Mapping[str, Schedule]
    us: float
    pdl: bool


_TIMED = (
    "SELECT id, assembled_us, pdl_us, schedules FROM grouping "
    "WHERE run = ? AND (assembled_us IS NOT NULL OR pdl_us IS NOT NULL) ORDER BY position"
)


def fastest_graph(connection: Connection, run: str, kernel_key: str, known: set[bytes]) -> TimedGraph | None:
    """Of a run; the first entered where several tie. `known` has the digests of plans that were read, and gets more."""
    rows = sorted(connection.rows(_TIMED, (run,)), key=_time)
    with_kernel = (
        graph for graph in connection.readable(rows, _timed_graph) if not kernel_key or kernel_key in graph.schedules
    )
    return next(iter(_whole(connection, with_kernel, known)), None)


def _time(row: Row) -> float:
    """What can't be read comes first, so that it is told."""
    times = [us for us in (row["assembled_us"], row["pdl_us"]) if us is not None]
    return min(us if isinstance(us, int | float) else 0.0 for us in times)


def _timed_graph(row: Row) -> TimedGraph:
    with named_row(RowName("grouping", row["id"])):
        assembled, pdl = (time_or_none(row[name], may_be_zero=False) for name in ("assembled_us", "pdl_us"))
        us = min(one for one in (assembled, pdl) if one is not None)
        return TimedGraph(row["id"], read_schedules(row["schedules"]), us, pdl == us)


def _whole(connection: Connection, graphs: Iterable[TimedGraph], known: set[bytes]) -> Iterator[TimedGraph]:
    """Those whose plans can be read."""

    def read(graph: TimedGraph) -> TimedGraph:
        row = connection.first("SELECT plan FROM grouping WHERE id = ?", (graph.id,))
        with named_row(RowName("grouping", graph.id)):
            plan = row["plan"] if row is not None else None
            digest = sha256(plan.encode()).digest() if isinstance(plan, str) else b""
            if digest not in known:
                grouping_from_json(plan)  # type: ignore[arg-type]
                known.add(digest)
        return graph

    return connection.readable(graphs, read)
