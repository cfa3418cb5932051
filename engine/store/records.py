"""What goes into the store and comes out of it, as frozen records, and how a search-tree node is named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.events import NodeState
from engine.ir.plan import Grouping, Program
from engine.vocabulary import Failure, KnobValue, Option, Schedule, Timing

IMPORTED = "import"
"""The device of a run that came in a file: nobody typed its target here, so nothing runs it."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a run starts with. `prior` is the version of the prior that steers it, `version` the product's."""

    target: str
    program: Program
    device: str
    gpu: str
    context_key: str
    seed: int
    patience: int
    prior: str
    command: str = ""
    author: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """One search-tree node as the search sees it now. `kernel_key` is "" in the outer tree, `parent` "" for a root.

    `knobs` are the values fixed from the root down to here, `prior` the predicted speed among the siblings,
    `best_us` the best time below.
    """

    node: str
    parent: str
    kernel_key: str
    knobs: Mapping[str, KnobValue]
    label: str
    depth: int
    prior: float
    visits: int = 0
    best_us: float | None = None
    state: str = NodeState.OPEN
    is_leaf: bool = False


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One recorded run. `state` and `reason` are the last that were recorded: a killed run stays "running".

    `summary` is the JSON text that ended it ("{}" until then); moments are seconds since 1970 (UTC).
    """

    id: str
    target: str
    device: str
    gpu: str
    context_key: str
    seed: int
    patience: int
    prior: str
    command: str
    author: str
    version: str
    started_at: float
    ended_at: float | None
    state: str
    reason: str
    summary: str


@dataclass(frozen=True, slots=True)
class RecordedAssembly:
    """A grouping that was put together and timed as one graph (deploy regime)."""

    timing: Timing | None
    error: float | None
    failure: Failure | None
    schedules: Mapping[str, Schedule]


@dataclass(frozen=True, slots=True)
class RecordedGrouping:
    """One grouping of a run, in the order in which the run entered it.

    `assembled_us` is its time as one graph of plain launches, `pdl_us` with programmatic dependent launch; `schedules`
    are those of its kernels, by structural key, where it was put together.
    """

    id: str
    decisions: tuple[Option, ...]
    grouping: Grouping
    sum_us: float | None
    assembled_us: float | None
    reason: str
    pdl_us: float | None = None
    pdl_reason: str = ""
    schedules: Mapping[str, Schedule] = field(default_factory=dict)

    @property
    def whole_us(self) -> float | None:
        """The faster of its two times as one graph."""
        return min((us for us in (self.assembled_us, self.pdl_us) if us is not None), default=None)


_COMPACT = json.JSONEncoder(separators=(",", ":")).encode
"""Made once: nodes come by the ten thousand."""


def node_key(context_key: str, tree: str, knobs: Mapping[str, KnobValue]) -> str:
    """The name of the node that a path leads to: 24 hex digits, equal in any process and for any order of the knobs.

    `tree` is the structural key of the kernel, or the name of an outer tree.
    """
    text = _COMPACT([context_key, tree, sorted(knobs.items())])
    return hashlib.sha256(text.encode()).hexdigest()[:24]
