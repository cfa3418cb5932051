"""The rows that a snapshot is made of: a kernel, a node of a search tree, a grouping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.event_words import KernelState, NodeState
from engine.events import CandidateStarted, Compared, KernelFinished, Measured
from engine.vocabulary import Schedule


@dataclass(slots=True)
class TrialPoint:
    """One point of a kernel's curve: `us` is None for a failed candidate."""

    trial: int
    at: float
    us: float | None


@dataclass(frozen=True, slots=True)
class DeployTime:
    """A candidate's time in the deploy regime, by its schedule as words and its tree node, "" if that isn't known."""

    us: float
    schedule: str
    node: str


@dataclass(slots=True)
class KernelRow:
    """One kernel. The best is what would deploy: by deploy time where there is one, else by ranking time.

    `best_us` is the search's own, the best ranking time, of `ranked_schedule` at `ranked_node`. `deploys` are the
    candidates with a deploy time by schedule; `deployed` is the one that would deploy, which finalists timed in turns
    decide and not the lowest time alone. `measured`, `cached` and `failed` count timings of both regimes and every run,
    `candidates` and `failures` what they are of, each once; `points` has none of what an earlier search had.

    `prior` is the version that steered its last search. `floor_us` is what the GPU needs for it at its best, None if
    unknown, `bound` by what: "memory" or "compute". `count` is 0 where nobody knows how often it occurs; `recorded` are
    the rows that a database holds of a kernel of which no run has told.
    """

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
    prior: str = ""
    since_best: int = 0
    first_us: float | None = None
    best_us: float | None = None
    ranked_schedule: str = ""
    ranked_node: str = ""
    deployed: DeployTime | None = None
    deploys: dict[str, DeployTime] = field(default_factory=dict)
    measured: int = 0
    cached: int = 0
    failed: int = 0
    points: list[TrialPoint] = field(default_factory=list)
    floor_us: float | None = None
    bound: str = ""
    recorded: int = 0
    _seen: set[int] = field(default_factory=set, repr=False)
    _failed: set[int] = field(default_factory=set, repr=False)
    _before: DeployTime | None = None
    _searches: int = 0
    _earlier: frozenset[int] = frozenset()

    @property
    def candidates(self) -> int:
        """Distinct candidates that were answered, however many runs asked for them."""
        return len(self._seen) or self.recorded

    @property
    def failures(self) -> int:
        """Distinct failed candidates, one that failed in both regimes twice: the rows of the failure clusters."""
        return len(self._failed)

    @property
    def best_schedule(self) -> str:
        """The schedule of the time that counts, as words; "" before there is one."""
        return self.deployed.schedule if self.deployed is not None else self.ranked_schedule

    @property
    def best_node(self) -> str:
        """The tree node of the time that counts; "" if it isn't known."""
        return self.deployed.node if self.deployed is not None else self.ranked_node

    @property
    def deploy_places(self) -> list[DeployTime]:
        """What has a deploy time, the one that would deploy first, then by time."""
        chosen = self.deployed
        rest = sorted((one for one in self.deploys.values() if one != chosen), key=lambda one: one.us)
        return [chosen, *rest] if chosen is not None else rest

    @property
    def deploy_us(self) -> float | None:
        """The deploy time of what would deploy; None before there is one."""
        return self.deployed.us if self.deployed is not None else None

    @property
    def chosen_us(self) -> float | None:
        """The time that counts: the deploy regime's where it was taken, else the ranking one."""
        return self.deploy_us if self.deploy_us is not None else self.best_us

    @property
    def over_floor(self) -> float | None:
        """How many times its floor the time that counts is."""
        return self.chosen_us / self.floor_us if self.chosen_us is not None and self.floor_us else None

    def start(self, prior: str) -> None:
        """A search begins, steered by a prior. One of an earlier run may have found what deploys."""
        self.since_best, self._before, self.prior = 0, self.deployed, prior
        self._earlier = frozenset(self._seen)
        self._searches += 1

    def take(self, event: Measured) -> None:
        """One candidate was timed, or served from the database."""
        failed = event.status == "failed"
        self.failed += failed
        self.cached += event.cached
        self.measured += not event.cached
        if failed:
            self._failed.add(hash((event.schedule, event.regime)))
        if event.trial:
            self._take_trial(event)
        elif event.us is not None:
            self._take_deploy(DeployTime(event.us, schedule_text(event.schedule), event.node))

    def _take_trial(self, event: Measured) -> None:
        place = hash(event.schedule)
        self._seen.add(place)
        if place not in self._earlier:
            self.points.append(TrialPoint(len(self.points) + 1, event.at, event.us))
        self.since_best = 0 if event.best else self.since_best + 1
        self.first_us = event.us if self.first_us is None else self.first_us
        beaten = self.best_us is not None and event.us is not None and event.us > self.best_us
        if event.best and not (beaten and self._searches > 1):  # the first of a later search is best among its own only
            self.best_us, self.ranked_schedule, self.ranked_node = event.us, schedule_text(event.schedule), event.node

    def _take_deploy(self, one: DeployTime) -> None:
        known = self.deploys.get(one.schedule)
        if known is None or one.us < known.us:
            self.deploys[one.schedule] = one
        if not _has_controls(one.schedule) and (self.deployed is None or one.us < self.deployed.us):
            self.deployed = one

    def finish(self, event: KernelFinished, compared: Compared | None) -> None:
        """A search ended with what it would deploy. An earlier one's stands where it is faster, unless the two took
        part in the comparison that chose."""
        self.state, self.reason = event.state, event.reason
        schedule = schedule_text(event.best_schedule)
        if event.best_us is None:
            self.ranked_schedule = schedule or self.ranked_schedule
            return
        found = DeployTime(event.best_us, schedule, self._node_of(schedule))
        self.deploys[schedule] = found
        before = self._before
        among = compared.schedules if compared is not None else ()
        if before is None or found.us <= before.us or before.schedule in map(schedule_text, among):
            self.deployed = found
        else:
            self.deployed = before

    def _node_of(self, schedule: str) -> str:
        known = self.deploys.get(schedule)
        return known.node if known is not None else self.ranked_node if schedule == self.ranked_schedule else ""

    def know(self, us: float | None, schedule: str) -> None:
        """What deploys by all that a database holds, also by runs whose events aren't told; without `us` nothing of it
        has a deploy time."""
        if us is None:
            self.deployed = None
            self.deploys.clear()
        else:
            one = DeployTime(us, schedule_text(schedule), self._node_of(schedule_text(schedule)))
            self.deploys[one.schedule] = one
            self.deployed = one


def _has_controls(schedule: str) -> bool:
    """Whether a schedule has ptxas controls, which have to prove that they win before they deploy."""
    return any(word.startswith("ACF=") and word != "ACF=" for word in schedule.split(" "))


def schedule_text(key: str) -> str:
    """A schedule's canonical JSON as words; other text as it is."""
    if not key.startswith("{"):
        return key
    try:
        return str(Schedule.from_key(key))
    except ValueError:
        return key


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
    `bounded` says that it can't win, for which `reason` has the numbers: its kernels were not tuned.
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
    bounded: bool = False

    @property
    def whole_us(self) -> float | None:
        """The faster of its two times as one graph."""
        return min((us for us in (self.assembled_us, self.pdl_us) if us is not None), default=None)


def let_go(kernel: str, running: dict[str, CandidateStarted], nodes: Mapping[str, NodeRow]) -> None:
    """What was in flight when a kernel's search ended is answered no more."""
    for node in [node for node, started in running.items() if started.kernel == kernel]:
        del running[node]
        row = nodes.get(node)
        if row is not None and row.state == NodeState.RUNNING:
            row.state = NodeState.OPEN


def cut_off(
    kernels: Mapping[str, KernelRow], running: dict[str, CandidateStarted], nodes: Mapping[str, NodeRow]
) -> None:
    """A run ended, or another one begins after one that died: nobody goes on with what was being tuned."""
    for row in kernels.values():
        if row.state == KernelState.TUNING:
            let_go(row.kernel, running, nodes)
            row.state = KernelState.CUT_OFF
