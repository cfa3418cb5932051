"""How a kernel's finalists compared when they were last timed in turns, read from the journals of runs.

The journal keeps it whole, so there is no second copy that could differ from what a run showed.
"""

from __future__ import annotations

from engine.events import Compared, ComparedInPlace, ControlsChecked
from engine.store.connection import Connection
from engine.store.event_rows import read_event
from engine.vocabulary import Schedule, Verdict

_OF_CONTEXT = (
    "SELECT event.seq, event.at, event.kind, event.body FROM run JOIN event ON event.run = run.id "
    "WHERE run.context_key = ? AND event.kind = ? "
    "AND CASE WHEN json_valid(event.body) THEN {} END "
    "ORDER BY event.at DESC, event.seq DESC"
)
_EVERY = _OF_CONTEXT.format("1")
_LATEST = _OF_CONTEXT.format("json_extract(event.body, ?) = ?")


_TRIED = ComparedInPlace.__name__
_OF_RUN = "SELECT seq, at, kind, body FROM event WHERE run = ? AND kind = ? ORDER BY seq"


def controls_checked(connection: Connection, run: str) -> ControlsChecked | None:
    """What proved ptxas controls in a run, or turned them off; None for a run that searched none."""
    event = connection.first_readable(f"{_OF_RUN} DESC", (run, ControlsChecked.__name__), read_event)
    return event if isinstance(event, ControlsChecked) else None


class LatestComparisons:
    """The newest comparison of each kernel in a context, of any run. A look goes through whole journals, so one answers
    for all kernels until something is written."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._seen: object = None
        self._by_context: dict[str, dict[str, Compared]] = {}

    def of(self, kernel_key: str, context_key: str) -> Compared | None:
        """None if there was none, or the newest is not whole. Raises StoreError when the database can't be read."""
        seen = self._connection.data_version(), self._connection.db.conn.total_changes
        if seen != self._seen:
            self._seen, self._by_context = seen, {}
        if context_key not in self._by_context:
            self._by_context[context_key] = self._read(context_key)
        event = self._by_context[context_key].get(kernel_key)
        return event if event is not None and _is_whole(event, event.chosen) else None

    def _read(self, context_key: str) -> dict[str, Compared]:
        rows = self._connection.rows(_EVERY, (context_key, Compared.__name__))
        newest: dict[str, Compared] = {}
        for event in self._connection.readable(rows, read_event):
            if isinstance(event, Compared):
                newest.setdefault(event.kernel, event)
        return newest


def comparisons_in_place(connection: Connection, run: str) -> tuple[ComparedInPlace, ...]:
    """What a run tried in whole graphs, in order. Raises StoreError when the database can't be read."""
    found = connection.readable(connection.rows(_OF_RUN, (run, _TRIED)), read_event)
    return tuple(event for event in found if isinstance(event, ComparedInPlace) and _says_all(event))


def comparison_in_place(connection: Connection, graphs: str, context_key: str) -> ComparedInPlace | None:
    """How exactly these graphs compared when they were last timed in turns in this context; None if they were not.

    Raises StoreError when the database can't be read.
    """
    asked = (context_key, _TRIED, "$.graphs", graphs)
    event = connection.first_readable(_LATEST, asked, read_event)
    return event if isinstance(event, ComparedInPlace) and _says_all(event) else None


def _says_all(event: ComparedInPlace) -> bool:
    timed = len(event.medians_us) == len(event.schedules) and _is_whole(event, event.kept)
    return timed or bool(event.reason and event.kept in event.schedules[:1])


def _is_whole(event: Compared | ComparedInPlace, chosen: str) -> bool:
    """Whether the row says what a comparison says: someone else may have written the file."""
    others = (event.ratios, event.lows, event.highs, event.p_values, event.effects, event.verdicts)
    try:
        schedules = [Schedule.from_key(key).key for key in event.schedules]
    except ValueError:
        return False
    counted = all(len(values) == len(schedules) - 1 for values in others)
    numbers = all(isinstance(value, int | float) for values in others[:-1] for value in values)
    return counted and numbers and chosen in schedules and set(event.verdicts) <= set(Verdict)
