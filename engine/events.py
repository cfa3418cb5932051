"""Every event of a run.

An event holds ids, numbers and text only, so it is its own JSON log line. A live run and `store.follow()` yield
the same events, and `engine.snapshot.apply` folds them into what a screen shows.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from engine.event_words import Event as Event
from engine.event_words import KernelState as KernelState
from engine.event_words import NodeState as NodeState
from engine.event_words import RunState as RunState
from engine.health_events import CeilingsMeasured as CeilingsMeasured
from engine.health_events import CompilersSeen as CompilersSeen
from engine.health_events import FloorFound as FloorFound
from engine.health_events import GpuSampled as GpuSampled
from engine.health_events import Health as Health
from engine.health_events import Respawned as Respawned
from engine.health_events import WorkersSeen as WorkersSeen


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
    """`sum_us` is None when a kernel of the grouping could not be tuned; `reason` then says which and why.

    So it is as well when the grouping is `bounded`: it can't win, and its kernels were not tuned.
    """

    grouping: str
    sum_us: float | None
    reason: str = ""
    bounded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingsExplored(Event):
    """The outer search of a program ended. `untried` groupings were never entered; unless `exact`, at least so many.

    `failed` counts the entered ones with a kernel that could not be tuned, `bounded` those that can't win; `reason`
    says why the search ended.
    """

    entered: int
    failed: int
    untried: int
    exact: bool
    reason: str = ""
    bounded: int = 0


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
    """`forbidden` are the knob values that a person ruled out together for it, a corner a text."""

    kernel: str
    patience: int
    forbidden: tuple[str, ...] = ()


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
class Compared(Event):
    """A kernel's finalists were timed in turns. `schedules` are canonical keys, the lowest deploy time first.

    The other tuples hold a value for each but the first, against the first: the ratio of the times (below 1 is faster),
    the interval in which another process should find it, the corrected p-value, Cohen's d and the verdict.
    `noise_share` is the floor that they were judged with. `cached` says that an earlier run's comparison is told.
    Where controls were searched, the first has none, `tried` counts the candidates with some that the p-values are
    corrected for, and `control_ratio` is the first timed against itself beside them (0: it was not).
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
    tried: int = 0
    control_ratio: float = 0.0
    control_verdict: str = ""

    @property
    def tied(self) -> int:
        """How many of the others the chosen one does not beat beyond the noise."""
        at = self.schedules.index(self.chosen)
        if at == 0:
            return self.verdicts.count("within noise")
        return sum(low <= self.highs[at - 1] for other, low in enumerate(self.lows) if other != at - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedInPlace(Event):
    """Schedules of one kernel were timed in turns in the whole graph of `grouping`; `kept` is the one it goes on with.

    `schedules` are canonical keys: the one that the graph had, then its runners-up. `medians_us` are the graph's times
    with each, and the other tuples as in `Compared`; without any, `reason` says why nothing was timed. `graphs` stands
    for the plan, all of its schedules and `pdl`. `cached` says that an earlier run's comparison is told.
    """

    grouping: str
    kernel: str
    graphs: str
    schedules: tuple[str, ...]
    kept: str
    medians_us: tuple[float, ...] = ()
    noise_share: float = 0.0
    ratios: tuple[float, ...] = ()
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()
    p_values: tuple[float, ...] = ()
    effects: tuple[float, ...] = ()
    verdicts: tuple[str, ...] = ()
    pdl: bool = False
    reason: str = ""
    cached: bool = False

    @property
    def text(self) -> str:
        """What came of it, for a person."""
        count = len(self.schedules) - 1
        others = f"{count} runner{'s' if count > 1 else ''}-up"
        if self.reason or not self.schedules:
            return f"{others} not timed in the graph: {self.reason}"
        times = dict(zip(self.schedules, self.medians_us, strict=False))
        before, after = times.get(self.schedules[0], 0.0), times.get(self.kept, 0.0)
        if self.kept == self.schedules[0]:
            return f"none of {others} makes the graph of {before:.2f} us faster beyond the noise"
        return f"one of {others} makes the graph faster: {after:.2f} us in place of {before:.2f} us"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlsChecked(Event):
    """Whether ptxas controls may be searched in this run, and what proved it. `reason` is a sentence where `on` is not.

    `ptxas` is version and binary. Of `given` files `offered` fit, and `changing` of these change a probe's code.
    `slowdown` is how much longer a kernel takes without ptxas's optimization, `control_ratio` the kernel against itself
    (0: not timed). `mode` is "joint", "after" or "shared". Told again with each file that a kernel's search set aside
    because it only broke its candidates: which file (sha256), of which kernel, and how they failed.
    """

    on: bool
    reason: str
    ptxas: str
    given: int
    offered: int
    changing: int
    rejected: tuple[str, ...] = ()
    slowdown: float = 0.0
    control_ratio: float = 0.0
    mode: str = "joint"
    set_aside: tuple[str, ...] = ()
    set_aside_kernels: tuple[str, ...] = ()
    set_aside_causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted(Event):
    """A person steered the run: `verb` is that of `engine.tune`'s control, `kernel` "" where the whole run is meant.

    `value` is the patience that a kernel has from now on, where that is what was changed; `detail` says it in words.
    """

    verb: str
    kernel: str = ""
    value: int = 0
    detail: str = ""
    author: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChanged(Event):
    """The kernels that wait to be tuned again after what is on now, in order, by structural key."""

    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorRefit(Event):
    """The prior was fitted to what is known now; the run that ends was not steered by it, the next one is.

    `version` is the fitted model's, `steering` that of the prior which answers from now on: the cold model's where the
    fitted one is quarantined, and `reason` says which and why. `spearman` is its rank correlation on `kernels` kernels
    that were held out, None where that can't be measured; `rows` are what it was fitted to, of them `fresh` new ones.
    """

    version: str
    steering: str
    trusted: bool
    rows: int
    fresh: int
    kernels: int
    spearman: float | None
    reason: str
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged(Event):
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """What a run came to. `assembled_us` is the time of the winning graph; in it `in_place` kernels have another
    schedule than the one that is best by itself, with which the graph took `alone_us` (None where none has)."""

    measured: int
    cached: int
    failed: int
    best_us: float | None
    sum_us: float | None
    assembled_us: float | None
    search_share: float
    gpu_idle_share: float
    wall_s: float
    in_place: int = 0
    alone_us: float | None = None


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
        ComparedInPlace,
        ControlsChecked,
        GpuSampled,
        Health,
        CompilersSeen,
        WorkersSeen,
        Respawned,
        CeilingsMeasured,
        FloorFound,
        Acted,
        QueueChanged,
        PriorRefit,
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
