"""When a search stops, as functions of its counters.

Patience counts what was answered since the last new best. Proposals in flight are held against it before they are
answered, so exactly `patience` answers follow the last best however many proposals are outstanding, and the count
does not depend on the number of cores. A stop is final once nothing is in flight: until then any answer may be a
new best, which starts the count again.
"""

from __future__ import annotations

from enum import StrEnum


class StopReason(StrEnum):
    PATIENCE = "patience used up"
    EXHAUSTED = "every candidate tried"
    LIMIT = "limit reached"


def may_propose(*, since_best: int, decided: int, in_flight: int, patience: int, limit: int | None) -> bool:
    """Whether one more proposal fits, if every proposal in flight turned out to be no new best."""
    return since_best + in_flight < patience and (limit is None or decided + in_flight < limit)


def stop_reason(
    *, exhausted: bool, since_best: int, decided: int, in_flight: int, patience: int, limit: int | None
) -> StopReason | None:
    """Why nothing is proposed any more, or None while something is in flight or may still be proposed.

    `exhausted`: no open leaf is left. Running out says most, so it is named first.
    """
    if in_flight:
        return None
    if exhausted:
        return StopReason.EXHAUSTED
    if limit is not None and decided >= limit:
        return StopReason.LIMIT
    return StopReason.PATIENCE if since_best >= patience else None
