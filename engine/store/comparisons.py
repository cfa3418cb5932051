"""How a kernel's finalists compared when they were last timed in turns, read from the journals of runs.

The journal keeps it whole, so there is no second copy that could differ from what a run showed.
"""

from __future__ import annotations

from engine.events import Compared, ComparedInPlace, ControlsChecked
from engine.store.connection import Connection
from engine.store.event_rows import read_event
from engine.vocabulary import Schedule, Verdict

_LATEST = (
    "SELECT event.seq, event.at, event.kind, event.body FROM run JOIN event ON event.run = run.id "
    "WHERE run.context_key = ? AND event.kind = ? "
    "AND CASE WHEN json_valid(event.body) THEN json_extract(event.body, ?) END = ? "
    "ORDER BY event.at DESC, event.seq DESC"
)


_TRIED = ComparedInPlace.__name__
_OF_RUN = "SELECT seq, at, kind, body FROM event WHERE run = ? AND kind = ? ORDER BY seq"


def controls_checked(connection: Connection, run: str) -> ControlsChecked | None:
    """What proved ptxas controls in a run, or turned them off; None for a run that searched none."""
    event = connection.first_readable(f"{_OF_RUN} DESC", (run, ControlsChecked.__name__), read_event)
    return event if isinstance(event, ControlsChecked) else None


def latest_comparison(connection: Connection, kernel_key: str, context_key: str) -> Compared | None:
    """The newest comparison of the kernel in this context, of any run; None if there was none, or it is not whole.

    Raises StoreError when the database can't be read.
    """
    asked = (context_key, Compared.__name__, "$.kernel", kernel_key)
    event = connection.first_readable(_LATEST, asked, read_event)
    return event if isinstance(event, Compared) and _is_whole(event, event.chosen) else None


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
