"""What a screen, a progress bar or a log needs to know of a run, and the one function that folds events into it.

`apply` is deterministic and touches neither clock, file nor network. It folds in place and returns the same
snapshot, because a run has up to a million nodes: a snapshot belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine.events import (
    Acted,
    Assembled,
    CandidateStarted,
    CeilingsMeasured,
    Compared,
    ComparedInPlace,
    CompilersSeen,
    ControlsChecked,
    Event,
    FloorFound,
    GpuSampled,
    GroupingEntered,
    GroupingScored,
    GroupingsExplored,
    Health,
    KernelFinished,
    KernelFound,
    KernelStarted,
    KernelState,
    Logged,
    Measured,
    NodeOpened,
    NodeState,
    NodeVisited,
    PriorRefit,
    QueueChanged,
    Respawned,
    RunFinished,
    RunStarted,
    RunState,
    StateChanged,
    WorkersSeen,
)
from engine.snapshot_rows import DeployTime as DeployTime
from engine.snapshot_rows import GroupingRow as GroupingRow
from engine.snapshot_rows import KernelRow as KernelRow
from engine.snapshot_rows import NodeRow as NodeRow
from engine.snapshot_rows import TrialPoint as TrialPoint
from engine.snapshot_rows import cut_off, let_go

LOG_LIMIT = 2000


@dataclass(slots=True)
class Snapshot:
    """Everything a screen, a progress bar or a log needs to know of one run.

    `versions` counts the changes of each panel ("run", "kernels", "tree", "curve", "log", "health"), so that a
    painter redraws only what moved.
    """

    run: RunStarted | None = None
    state: str = RunState.IDLE
    state_reason: str = ""
    kernels: dict[str, KernelRow] = field(default_factory=dict)
    nodes: dict[str, NodeRow] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    groupings: dict[str, GroupingRow] = field(default_factory=dict)
    current_kernel: str = ""
    current_grouping: str = ""
    running: dict[str, CandidateStarted] = field(default_factory=dict)
    log: list[Event] = field(default_factory=list)
    health: Health | None = None
    gpus: dict[str, GpuSampled] = field(default_factory=dict)
    """The latest look at each GPU, by the device's name."""
    compilers: CompilersSeen | None = None
    """The compiles that ran at the last look."""
    workers: WorkersSeen | None = None
    """The benchmark processes at the last look."""
    respawned: list[Respawned] = field(default_factory=list)
    """The processes that candidates took down, oldest first."""
    ceilings: CeilingsMeasured | None = None
    """What the run's GPU can do at its best."""
    comparisons: dict[str, Compared] = field(default_factory=dict)
    """How each kernel's finalists compared, by the kernel's structural key."""
    controls: ControlsChecked | None = None
    """Whether ptxas controls are searched; None where nobody asked for it."""
    finished: RunFinished | None = None
    ended: dict[str, RunFinished] = field(default_factory=dict)
    """What each run said at its end, by its id; a session of several programs says it once, of all of them."""
    last_at: float = 0.0
    programs: dict[str, RunStarted] = field(default_factory=dict)
    """The start of each run, by its id: a replay makes several, one a program."""
    explored: dict[str, GroupingsExplored] = field(default_factory=dict)
    """How the outer search of each run ended, by the run's id."""
    acts: list[Acted] = field(default_factory=list)
    """How people steered the run, oldest first."""
    prior_refit: PriorRefit | None = None
    """How the prior was last fitted, after the run's kernels."""
    queue: tuple[str, ...] = ()
    """Kernels that wait to be tuned again after the present run, by structural key."""
    measured: int = 0
    cached: int = 0
    failed: int = 0
    """Timings of both regimes and every run, of which some failed."""
    versions: dict[str, int] = field(default_factory=dict)

    def touch(self, *panels: str) -> None:
        for panel in panels:
            self.versions[panel] = self.versions.get(panel, 0) + 1

    def own_groupings(self) -> list[GroupingRow]:
        """The groupings that the present run entered."""
        run = self.run.run if self.run else ""
        return [row for row in self.groupings.values() if row.run == run]

    def assembled_grouping(self) -> GroupingRow | None:
        """The present run's fastest grouping that was assembled and timed."""
        timed = [row for row in self.own_groupings() if row.whole_us is not None]
        return min(timed, key=lambda row: row.whole_us or 0.0, default=None)

    def leading_grouping(self) -> GroupingRow | None:
        """The present run's fastest grouping as it was assembled, before that the one with the smallest sum, and the
        one it is at while none is scored."""
        scored = [row for row in self.own_groupings() if row.sum_us is not None]
        present = self.groupings.get(self.current_grouping)
        return self.assembled_grouping() or min(scored, key=lambda row: row.sum_us or 0.0, default=present)

    def counted_kernels(self) -> list[tuple[KernelRow, int]]:
        """Kernels of the leading grouping with how often each occurs in it; before the first grouping every kernel of
        which that is known."""
        grouping = self.leading_grouping()
        if grouping is None:
            return [(row, row.count) for row in self.kernels.values() if row.count]
        pairs = zip(grouping.kernels, grouping.counts, strict=True)
        return [(self.kernels[kernel], count) for kernel, count in pairs if kernel in self.kernels]

    def counted_us(self) -> float | None:
        """Best times so far times how often each counted kernel occurs, over those that have a time; in us."""
        times = [row.chosen_us * count for row, count in self.counted_kernels() if row.chosen_us is not None]
        return sum(times) if times else None

    @property
    def failures(self) -> int:
        """Distinct failed candidates of all kernels: the rows of the failure clusters."""
        return sum(row.failures for row in self.kernels.values())

    def sum_best_us(self) -> float | None:
        """What it comes to: the run's own sum once it has ended, until then that of the counted kernels; in us."""
        ended = self.finished.sum_us if self.finished else None
        return ended if ended is not None else self.counted_us()


def _run_started(snapshot: Snapshot, event: RunStarted) -> None:
    cut_off(snapshot.kernels, snapshot.running, snapshot.nodes)
    snapshot.run, snapshot.finished, snapshot.current_grouping = event, None, ""
    snapshot.programs[event.run] = event
    snapshot.touch("run", "kernels")


def _state_changed(snapshot: Snapshot, event: StateChanged) -> None:
    snapshot.state, snapshot.state_reason = event.state, event.reason
    if event.state in (RunState.STOPPED, RunState.FINISHED, RunState.FAILED):
        cut_off(snapshot.kernels, snapshot.running, snapshot.nodes)
        snapshot.touch("kernels")
    _log(snapshot, event)
    snapshot.touch("run")


def _grouping_entered(snapshot: Snapshot, event: GroupingEntered) -> None:
    row = GroupingRow(event.grouping, event.decisions, event.kernels, event.counts)
    row.run = snapshot.run.run if snapshot.run else ""
    snapshot.groupings[event.grouping] = row
    snapshot.current_grouping = event.grouping
    snapshot.touch("kernels", "tree")


def _grouping_scored(snapshot: Snapshot, event: GroupingScored) -> None:
    row = snapshot.groupings.get(event.grouping)
    if row is not None:
        row.sum_us, row.reason, row.bounded = event.sum_us, event.reason, event.bounded
    _log(snapshot, event)
    snapshot.touch("kernels", "tree")


def _kernel_found(snapshot: Snapshot, event: KernelFound) -> None:
    row = snapshot.kernels.get(event.kernel)
    if row is None:
        snapshot.kernels[event.kernel] = KernelRow(
            event.kernel, event.label, event.family, event.shape, event.count, event.flops, event.bytes_moved
        )
    else:
        row.count = event.count
    snapshot.touch("kernels")


def _kernel_started(snapshot: Snapshot, event: KernelStarted) -> None:
    row = snapshot.kernels.get(event.kernel)
    if row is not None:
        row.start(snapshot.run.prior if snapshot.run else "")
        row.state, row.patience = KernelState.TUNING, event.patience
        row.forbidden = event.forbidden
    snapshot.current_kernel = event.kernel
    snapshot.touch("kernels", "curve", "tree")


def _kernel_finished(snapshot: Snapshot, event: KernelFinished) -> None:
    let_go(event.kernel, snapshot.running, snapshot.nodes)
    row = snapshot.kernels.get(event.kernel)
    if row is not None:
        row.finish(event, snapshot.comparisons.get(event.kernel))
    _log(snapshot, event)
    snapshot.touch("kernels")


def _node_opened(snapshot: Snapshot, event: NodeOpened) -> None:
    if event.node in snapshot.nodes:
        return
    snapshot.nodes[event.node] = NodeRow(event.node, event.parent, event.kernel, event.label, event.prior, event.depth)
    parent = snapshot.nodes.get(event.parent)
    (snapshot.roots if parent is None else parent.children).append(event.node)
    snapshot.touch("tree")


def _node_visited(snapshot: Snapshot, event: NodeVisited) -> None:
    row = snapshot.nodes.get(event.node)
    if row is not None:
        row.visits, row.best_us, row.state = event.visits, event.best_us, event.state
    snapshot.touch("tree")


def _candidate_started(snapshot: Snapshot, event: CandidateStarted) -> None:
    snapshot.running[event.node] = event
    row = snapshot.nodes.get(event.node)
    if row is not None:
        row.state = NodeState.RUNNING
    snapshot.touch("tree", "log")


def _measured(snapshot: Snapshot, event: Measured) -> None:
    snapshot.running.pop(event.node, None)
    failed = event.status == "failed"
    snapshot.failed += failed
    snapshot.cached += event.cached
    snapshot.measured += not event.cached
    row = snapshot.kernels.get(event.kernel)
    if row is not None:
        row.take(event)
    node = snapshot.nodes.get(event.node)
    if node is not None:
        node.failure, node.cause = event.failure, event.cause
        if node.state == NodeState.RUNNING:
            node.state = NodeState.FAILED if failed else NodeState.MEASURED
    _log(snapshot, event)
    snapshot.touch("kernels", "curve", "tree")


def _assembled(snapshot: Snapshot, event: Assembled) -> None:
    row = snapshot.groupings.get(event.grouping)
    if row is not None and event.pdl:
        row.pdl_us, row.pdl_reason = event.assembled_us, event.reason
    elif row is not None:
        row.assembled_us, row.assembled_reason = event.assembled_us, event.reason
    _log(snapshot, event)
    snapshot.touch("kernels", "run")


def _groupings_explored(snapshot: Snapshot, event: GroupingsExplored) -> None:
    snapshot.explored[snapshot.run.run if snapshot.run else ""] = event
    _log(snapshot, event)
    snapshot.touch("run")


def _health(snapshot: Snapshot, event: Health) -> None:
    snapshot.health = event
    snapshot.touch("health")


def _gpu_sampled(snapshot: Snapshot, event: GpuSampled) -> None:
    snapshot.gpus[event.device] = event
    snapshot.touch("health")


def _compilers_seen(snapshot: Snapshot, event: CompilersSeen) -> None:
    snapshot.compilers = event
    snapshot.touch("health")


def _workers_seen(snapshot: Snapshot, event: WorkersSeen) -> None:
    snapshot.workers = event
    snapshot.touch("health")


def _respawned(snapshot: Snapshot, event: Respawned) -> None:
    snapshot.respawned.append(event)
    _log(snapshot, event)
    snapshot.touch("health")


def _ceilings_measured(snapshot: Snapshot, event: CeilingsMeasured) -> None:
    snapshot.ceilings = event
    snapshot.touch("health", "kernels")


def _floor_found(snapshot: Snapshot, event: FloorFound) -> None:
    row = snapshot.kernels.get(event.kernel)
    if row is not None:
        row.floor_us, row.bound = event.floor_us, event.bound
    snapshot.touch("kernels")


def _compared(snapshot: Snapshot, event: Compared) -> None:
    snapshot.comparisons[event.kernel] = event
    snapshot.touch("kernels")


def _acted(snapshot: Snapshot, event: Acted) -> None:
    row = snapshot.kernels.get(event.kernel)
    if row is not None and event.value:
        row.patience = event.value
    snapshot.acts.append(event)
    _log(snapshot, event)
    snapshot.touch("kernels", "run")


def _queue_changed(snapshot: Snapshot, event: QueueChanged) -> None:
    snapshot.queue = event.kernels
    snapshot.touch("kernels", "run")


def _prior_refit(snapshot: Snapshot, event: PriorRefit) -> None:
    snapshot.prior_refit = event
    _log(snapshot, event)
    snapshot.touch("run")


def _controls_checked(snapshot: Snapshot, event: ControlsChecked) -> None:
    snapshot.controls = event
    snapshot.touch("kernels")


def _log(snapshot: Snapshot, event: Event) -> None:
    snapshot.log.append(event)
    if len(snapshot.log) > LOG_LIMIT:
        del snapshot.log[: LOG_LIMIT // 4]
    snapshot.touch("log")


def _run_finished(snapshot: Snapshot, event: RunFinished) -> None:
    snapshot.finished = event
    snapshot.ended[snapshot.run.run if snapshot.run else ""] = event
    _log(snapshot, event)
    snapshot.touch("run", "kernels")


_FOLDS: dict[type[Event], Callable[[Snapshot, Any], None]] = {
    RunStarted: _run_started,
    StateChanged: _state_changed,
    GroupingEntered: _grouping_entered,
    GroupingScored: _grouping_scored,
    GroupingsExplored: _groupings_explored,
    KernelFound: _kernel_found,
    KernelStarted: _kernel_started,
    KernelFinished: _kernel_finished,
    NodeOpened: _node_opened,
    NodeVisited: _node_visited,
    CandidateStarted: _candidate_started,
    Measured: _measured,
    Assembled: _assembled,
    Health: _health,
    GpuSampled: _gpu_sampled,
    CompilersSeen: _compilers_seen,
    WorkersSeen: _workers_seen,
    Respawned: _respawned,
    CeilingsMeasured: _ceilings_measured,
    FloorFound: _floor_found,
    Compared: _compared,
    ComparedInPlace: _log,
    ControlsChecked: _controls_checked,
    Acted: _acted,
    QueueChanged: _queue_changed,
    PriorRefit: _prior_refit,
    Logged: _log,
    RunFinished: _run_finished,
}


def apply(snapshot: Snapshot, event: Event) -> Snapshot:
    """Fold one event into the snapshot and return it."""
    _FOLDS[type(event)](snapshot, event)
    snapshot.last_at = event.at
    return snapshot
