"""The rows that a snapshot is made of: a kernel, a node of a search tree, a grouping."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.event_words import KernelState, NodeState


@dataclass(slots=True)
class TrialPoint:
    """One point of a kernel's curve: `us` is None for a failed candidate."""

    trial: int
    at: float
    us: float | None


@dataclass(slots=True)
class KernelRow:
    """`floor_us` is what the GPU needs for it at its best, None if unknown, `bound` by what: "memory" or "compute"."""

    kernel: str
    label: str
    family: str
    shape: str
    count: int
    flops: int
    bytes_moved: int
    state: str = KernelState.WAITING
    reason: str = ""
    patience: int = 0
    forbidden: tuple[str, ...] = ()
    since_best: int = 0
    first_us: float | None = None
    best_us: float | None = None
    deploy_us: float | None = None
    best_schedule: str = ""
    measured: int = 0
    cached: int = 0
    failed: int = 0
    points: list[TrialPoint] = field(default_factory=list)
    floor_us: float | None = None
    bound: str = ""

    @property
    def chosen_us(self) -> float | None:
        """The time that counts: the deploy regime's where it was taken, else the ranking one."""
        return self.deploy_us if self.deploy_us is not None else self.best_us

    @property
    def over_floor(self) -> float | None:
        """How many times its floor the time that counts is."""
        return self.chosen_us / self.floor_us if self.chosen_us is not None and self.floor_us else None


@dataclass(slots=True)
class NodeRow:
    """`failure` and `cause` are those of the node's last candidate, "" where it did not fail."""

    node: str
    parent: str
    kernel: str
    label: str
    prior: float
    depth: int
    visits: int = 0
    best_us: float | None = None
    state: str = NodeState.OPEN
    failure: str = ""
    cause: str = ""
    children: list[str] = field(default_factory=list)


@dataclass(slots=True)
class GroupingRow:
    """`run` is the run that entered it: a replay goes through several, one a program.

    `assembled_us` is its time as one graph of plain launches, `pdl_us` with programmatic dependent launch.
    `assembled_reason` says why it has no assembled time; "" while it was not put together; `pdl_reason` likewise.
    """

    grouping: str
    decisions: tuple[str, ...]
    kernels: tuple[str, ...]
    counts: tuple[int, ...]
    sum_us: float | None = None
    assembled_us: float | None = None
    reason: str = ""
    run: str = ""
    assembled_reason: str = ""
    pdl_us: float | None = None
    pdl_reason: str = ""

    @property
    def whole_us(self) -> float | None:
        """The faster of its two times as one graph."""
        return min((us for us in (self.assembled_us, self.pdl_us) if us is not None), default=None)
