"""The outer search: which kernels exist. A grouping's reward is 1 / the sum of its kernels' best times.

Kernels that groupings share are tuned once a run. A grouping with a kernel that can't be tuned fails and says why.
The cold model chooses the first grouping; then come the neighbours of the best, and where none promises much, the
tree's own choice. Every grouping that the search enters is judged by measured sums, but for those that can't win
whatever is measured (`engine.tune.bounding`): their kernels are not tuned. The learned model takes no part:
over 40 kernels of a Qwen3 layer it ordered whole kernels no better than the cold one, for seven times its cost.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from engine.events import GroupingEntered, GroupingScored, GroupingsExplored, NodeState
from engine.ir.plan import Grouping
from engine.prior import ColdModel
from engine.search import Path, Proposal, Search, Space, StopReason
from engine.tune.bounding import Bounding
from engine.tune.crew import Crew
from engine.tune.grouping_scoring import GroupingScorer
from engine.tune.kernel import KernelResult
from engine.tune.neighbourhood import Neighbourhood
from engine.tune.problem import Problem
from engine.tune.tree import TreeReporter
from engine.tune.untried import Untried, count_untried, forks_worth_asking
from engine.tune.workbench import Workbench

GROUPINGS_AHEAD = 4
"""So many groupings are entered before the first of them is scored, the same however many devices there are: what a
single grouping adds is often one kernel, which would keep one device busy and the others waiting."""


@dataclass(frozen=True, slots=True)
class GroupingResult:
    """A grouping with the best schedule of each kernel; `sum_us` is None when one of them has none.

    One that is `bounded` can't win, and none of its kernels was tuned for it.
    """

    name: str
    grouping: Grouping
    kernels: tuple[KernelResult, ...]
    sum_us: float | None
    reason: str = ""
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class _Entered:
    """A grouping whose kernels wait for a device, or are being tuned; unless it is bounded, for this reason."""

    name: str
    grouping: Grouping
    bounded: str


@dataclass(slots=True)
class OuterResult:
    """Everything the outer search entered, in order, and how the search ended."""

    groupings: list[GroupingResult] = field(default_factory=list)
    paths: set[Path] = field(default_factory=set)
    reason: str = ""

    def ranked(self) -> list[GroupingResult]:
        """Groupings whose every kernel was tuned, fastest sum first; equal sums keep the order of discovery."""
        tuned = [item for item in self.groupings if item.sum_us is not None]
        return sorted(tuned, key=lambda item: item.sum_us or 0.0)


def search_groupings(bench: Workbench, problem: Problem, outer: OuterResult) -> None:
    """Walk the structural forks, tuning each new kernel on the way; `outer` grows as groupings are scored."""
    space = problem.outer_space()
    scorer = GroupingScorer(ColdModel(), problem, space, bench.device.target)
    around = Neighbourhood(problem, space, scorer)
    bounding = Bounding(bench.floors)
    search = Search(space, scorer, patience=bench.settings.outer_patience)
    reporter = TreeReporter(bench, f"outer:{problem.target}", outer=True)
    window: deque[tuple[Proposal, _Entered]] = deque()
    with Crew(bench, problem) as crew:
        while True:
            bench.checkpoint()
            while len(window) < (GROUPINGS_AHEAD if outer.groupings else 1):
                with bench.tally.searching():
                    proposal = _next(search, around)
                if proposal is None:
                    break
                reporter.asked(proposal)
                grouping = problem.grouping(proposal.path)
                window.append((proposal, _enter(bench, crew, grouping, bounding.reason(grouping))))
            if not window:
                break
            proposal, entered = window.popleft()
            result = _tuned(crew, entered)
            times = {item.kernel.key: item.us for item in result.kernels if item.us is not None}
            around.measured(proposal.path, result.sum_us, times)
            bounding.measured(result.sum_us, times)
            bench.tell_ceilings(bench.device.health().ceilings)  # known since the first answer, and told once a second
            _told(bench, search, reporter, outer, proposal, result)
    outer.reason = _stop_text(search)
    _report_end(bench, problem, space, outer, exhausted=search.stopped is StopReason.EXHAUSTED)


def _next(search: Search, around: Neighbourhood) -> Proposal | None:
    """A neighbour of the best grouping that promises enough, else what the tree chooses."""
    path = around.next()
    proposal = search.ask_for(path) if path is not None else None
    if proposal is None:
        proposal = search.ask()
    if proposal is not None:
        around.entered(proposal.path)
    return proposal


def _told(
    bench: Workbench,
    search: Search,
    reporter: TreeReporter,
    outer: OuterResult,
    proposal: Proposal,
    result: GroupingResult,
) -> None:
    outer.groupings.append(result)
    outer.paths.add(tuple(proposal.path))
    search.tell(proposal, None if result.sum_us is None else 1.0 / result.sum_us)
    nodes = reporter.told(proposal)
    if result.bounded:
        nodes = (*nodes[:-1], replace(nodes[-1], state=NodeState.BOUNDED))
    bench.recorder.nodes(bench.run, nodes)
    bench.recorder.score(result.name, result.sum_us, result.reason)
    told = {"grouping": result.name, "sum_us": result.sum_us, "reason": result.reason, "bounded": result.bounded}
    bench.tell(GroupingScored, **told)
    reporter.emit_visits(nodes)


def _stop_text(search: Search) -> str:
    if search.stopped is StopReason.PATIENCE:
        return f"patience: {search.patience} groupings without a smaller sum"
    return "every grouping was tried" if search.stopped is StopReason.EXHAUSTED else "nothing left to try"


def _report_end(bench: Workbench, problem: Problem, space: Space, outer: OuterResult, *, exhausted: bool) -> None:
    forks = forks_worth_asking(len(problem.graph.ops) if problem.graph is not None else 0)
    with bench.tally.searching():
        left = Untried(0, exact=True) if exhausted else count_untried(space, outer.paths, forks)
    bench.tell(
        GroupingsExplored,
        entered=len(outer.groupings),
        failed=sum(item.sum_us is None and not item.bounded for item in outer.groupings),
        bounded=sum(item.bounded for item in outer.groupings),
        untried=left.count,
        exact=left.exact,
        reason=outer.reason,
    )


def _enter(bench: Workbench, crew: Crew, grouping: Grouping, bounded: str) -> _Entered:
    """Announce the grouping and, unless it can't win, ask for its kernels."""
    counts = grouping.kernel_counts()
    name = bench.recorder.grouping(bench.run, grouping)
    asked = () if bounded else tuple(counts.values())
    for kernel, count in asked:
        bench.tell_kernel(kernel, count)
    bench.tell(
        GroupingEntered,
        grouping=name,
        decisions=tuple(str(option) for option in grouping.decisions),
        kernels=tuple(counts),
        counts=tuple(count for _, count in counts.values()),
    )
    for kernel, _ in asked:
        crew.start(kernel)
    return _Entered(name, grouping, bounded)


def _tuned(crew: Crew, entered: _Entered) -> GroupingResult:
    """Wait for the grouping's kernels and add them up."""
    name, grouping = entered.name, entered.grouping
    if entered.bounded:
        return GroupingResult(name, grouping, (), None, entered.bounded, bounded=True)
    counts = grouping.kernel_counts()
    results = [crew.result(kernel) for kernel, _ in counts.values()]
    failed = [result for result in results if result.us is None]
    if failed:
        reason = "; ".join(f"{item.kernel.label or item.kernel.key}: {item.reason}" for item in failed)
        return GroupingResult(name, grouping, tuple(results), None, reason)
    total = sum((result.us or 0.0) * counts[result.kernel.key][1] for result in results)
    return GroupingResult(name, grouping, tuple(results), total)
