"""Every event of a run.

An event holds ids, numbers and text only, so it is its own JSON log line. A live run and `store.follow()` yield
the same events, and `engine.snapshot.apply` folds them into what a screen shows.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any


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
    WAITING = "waiting"
    TUNING = "tuning"
    DONE = "done"
    FAILED = "failed"


class NodeState(StrEnum):
    """The mark of a search-tree node. `OPEN` has options left below it, `EXHAUSTED` has none."""

    OPEN = "open"
    RUNNING = "running"
    MEASURED = "measured"
    FAILED = "failed"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`at` is seconds since 1970 (UTC)."""

    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    run: str
    target: str
    device: str
    gpu: str
    seed: int
    patience: int
    prior: str
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged(Event):
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingEntered(Event):
    """The outer search reached a grouping: `decisions` as text, one per structural fork."""

    grouping: str
    decisions: tuple[str, ...]
    kernels: tuple[str, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingScored(Event):
    """`sum_us` is None when a kernel of the grouping could not be tuned; `reason` then says which and why."""

    grouping: str
    sum_us: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingsExplored(Event):
    """The outer search of a program ended. `untried` groupings were never entered; unless `exact`, at least so many.

    `failed` counts the entered ones without a sum; `reason` says why the search ended.
    """

    entered: int
    failed: int
    untried: int
    exact: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFound(Event):
    kernel: str
    label: str
    family: str
    shape: str
    count: int
    flops: int
    bytes_moved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelStarted(Event):
    kernel: str
    patience: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFinished(Event):
    kernel: str
    state: str
    reason: str
    best_us: float | None
    best_schedule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOpened(Event):
    """A search-tree node exists. `kernel` is the structural key, or "" in the outer tree; `parent` "" is a root.

    `prior` is the predicted speed within its sibling set (best sibling = 1). `node` is unique within the database.
    """

    node: str
    parent: str
    kernel: str
    label: str
    prior: float
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVisited(Event):
    """`best_us` is the best time below the node (for the outer tree: the best sum)."""

    node: str
    visits: int
    best_us: float | None
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateStarted(Event):
    kernel: str
    node: str
    schedule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Event):
    """One candidate ended. `trial` counts the kernel's decided candidates of the run from 1; 0 in the deploy regime."""

    kernel: str
    node: str
    schedule: str
    regime: str
    status: str
    trial: int
    us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    failure: str = ""
    cause: str = ""
    cached: bool = False
    best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled(Event):
    """A grouping was put together and timed as one graph; `error` is the relative norm against eager.

    `pdl` says that its kernels were launched with programmatic dependent launch.
    """

    grouping: str
    sum_us: float
    assembled_us: float | None
    error: float | None = None
    reason: str = ""
    pdl: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(Event):
    """Shares are of the run's wall time so far, 0 to 1. `respawns` counts replaced workers and compilers.

    `noise_us` and `noise_share` are the noise floor: what a kernel timed against itself differs by, in us and as a
    share of its time; None until it has been measured.
    """

    search_share: float
    gpu_idle_share: float
    compiling: int
    respawns: int
    noise_us: float | None = None
    noise_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSampled(Event):
    """One look at the GPU of `device`; what its driver doesn't tell is None.

    Clocks are in MHz. `throttle` names why they are lowered; `others` are the other processes that compute there.
    """

    device: str
    sm_mhz: int | None = None
    sm_max_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    busy_share: float | None = None
    throttle: tuple[str, ...] | None = None
    others: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Event):
    """A kernel's finalists were timed in turns. `schedules` are canonical keys, the lowest deploy time first.

    The other tuples hold a value for each but the first, against the first: the ratio of the times (below 1 is faster),
    the interval in which another process should find it, the corrected p-value, Cohen's d and the verdict.
    `noise_share` is the floor that they were judged with. `cached` says that an earlier run's comparison is told.
    """

    kernel: str
    schedules: tuple[str, ...]
    chosen: str
    processes: int
    noise_share: float
    ratios: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    p_values: tuple[float, ...]
    effects: tuple[float, ...]
    verdicts: tuple[str, ...]
    cached: bool = False

    @property
    def tied(self) -> int:
        """How many of the others the chosen one does not beat beyond the noise."""
        at = self.schedules.index(self.chosen)
        if at == 0:
            return self.verdicts.count("within noise")
        return sum(low <= self.highs[at - 1] for other, low in enumerate(self.lows) if other != at - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged(Event):
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    measured: int
    cached: int
    failed: int
    best_us: float | None
    sum_us: float | None
    assembled_us: float | None
    search_share: float
    gpu_idle_share: float
    wall_s: float


EVENT_TYPES: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        RunStarted,
        StateChanged,
        GroupingEntered,
        GroupingScored,
        GroupingsExplored,
        KernelFound,
        KernelStarted,
        KernelFinished,
        NodeOpened,
        NodeVisited,
        CandidateStarted,
        Measured,
        Assembled,
        Compared,
        GpuSampled,
        Health,
        Logged,
        RunFinished,
    )
}


def to_json(event: Event) -> str:
    """One log line: the event's fields plus `event`, its kind."""
    return json.dumps({"event": type(event).__name__, **asdict(event)}, separators=(",", ":"))


def from_json(line: str) -> Event:
    """Read one log line back. Raises ValueError on an unknown kind, missing or unknown fields."""
    data = json.loads(line)
    if not isinstance(data, dict) or data.get("event") not in EVENT_TYPES:
        raise ValueError(f"not an event: {line[:80]!r}")
    kind = EVENT_TYPES[data.pop("event")]
    known = {f.name for f in fields(kind)}
    if not set(data) <= known:
        raise ValueError(f"unknown fields of {kind.__name__}: {sorted(set(data) - known)}")
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"incomplete {kind.__name__}: {error}") from None
