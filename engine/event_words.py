"""What every event has, and the states that events name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RunState(StrEnum):
    """What the engine is doing; `PAUSED` and `STOPPING` are requests it has acknowledged."""

    IDLE = "idle"
    CAPTURING = "capturing"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


class KernelState(StrEnum):
    """No event tells `CUT_OFF`: it is that of a kernel which a run was tuning when it ended, or died."""

    WAITING = "waiting"
    TUNING = "tuning"
    DONE = "done"
    FAILED = "failed"
    CUT_OFF = "cut off"


class NodeState(StrEnum):
    """The mark of a search-tree node. `OPEN` has options left below it, `EXHAUSTED` has none; `BOUNDED` can't win."""

    OPEN = "open"
    RUNNING = "running"
    MEASURED = "measured"
    FAILED = "failed"
    EXHAUSTED = "exhausted"
    BOUNDED = "bounded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`at` is seconds since 1970 (UTC)."""

    at: float
