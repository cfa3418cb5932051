"""The outer search: which kernels exist. A grouping's reward is 1 / the sum of its kernels' best times.

Kernels that groupings share are tuned once a run. A grouping with a kernel that can't be tuned fails and says why.
Between kernel sets the prior has no voice: every grouping that the search enters is judged by measured sums.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.events import GroupingEntered, GroupingScored, KernelFound
from engine.ir.plan import Grouping
from engine.search import Search
from engine.tune.kernel import KernelResult, tune_kernel
from engine.tune.problem import Problem
from engine.tune.scoring import no_opinion
from engine.tune.tree import TreeReporter
from engine.tune.workbench import Workbench


@dataclass(frozen=True, slots=True)
class GroupingResult:
    """A grouping with the best schedule of each kernel; `sum_us` is None when one of them has none."""

    name: str
    grouping: Grouping
    kernels: tuple[KernelResult, ...]
    sum_us: float | None
    reason: str = ""


@dataclass(slots=True)
class OuterResult:
    """Everything the outer search entered, in order, and whether options were left untried."""

    groupings: list[GroupingResult] = field(default_factory=list)
    reason: str = ""

    def ranked(self) -> list[GroupingResult]:
        """Groupings whose every kernel was tuned, fastest sum first; equal sums keep the order of discovery."""
        tuned = [item for item in self.groupings if item.sum_us is not None]
        return sorted(tuned, key=lambda item: item.sum_us or 0.0)


def search_groupings(bench: Workbench, problem: Problem, outer: OuterResult) -> None:
    """Walk the structural forks, tuning each new kernel on the way; `outer` grows as groupings are scored."""
    search = Search(problem.outer_space(), no_opinion, patience=bench.settings.outer_patience)
    reporter = TreeReporter(bench, f"outer:{problem.target}", outer=True)
    tuned: dict[str, KernelResult] = {}
    while True:
        bench.checkpoint()
        with bench.tally.searching():
            proposal = search.ask()
        if proposal is None:
            break
        reporter.asked(proposal)
        grouping = problem.grouping(proposal.path)
        result = _tune_grouping(bench, problem, grouping, tuned)
        outer.groupings.append(result)
        search.tell(proposal, None if result.sum_us is None else 1.0 / result.sum_us)
        nodes = reporter.told(proposal)
        bench.recorder.nodes(bench.run, nodes)
        bench.recorder.score(result.name, result.sum_us, result.reason)
        bench.tell(GroupingScored, grouping=result.name, sum_us=result.sum_us, reason=result.reason)
        reporter.emit_visits(nodes)
    outer.reason = str(search.stopped or "")


def _tune_grouping(
    bench: Workbench, problem: Problem, grouping: Grouping, tuned: dict[str, KernelResult]
) -> GroupingResult:
    counts = grouping.kernel_counts()
    name = bench.recorder.grouping(bench.run, grouping)
    for key, (kernel, count) in counts.items():
        bench.tell(
            KernelFound,
            kernel=key,
            label=kernel.label,
            family=kernel.family,
            shape=kernel.shape_text,
            count=count,
            flops=kernel.flops,
            bytes_moved=kernel.bytes_moved,
        )
    bench.tell(
        GroupingEntered,
        grouping=name,
        decisions=tuple(str(option) for option in grouping.decisions),
        kernels=tuple(counts),
        counts=tuple(count for _, count in counts.values()),
    )
    results: list[KernelResult] = []
    for key, (kernel, _) in counts.items():
        if key not in tuned:
            tuned[key] = tune_kernel(bench, problem, kernel)
        results.append(tuned[key])
    failed = [result for result in results if result.us is None]
    if failed:
        reason = "; ".join(f"{item.kernel.label or item.kernel.key}: {item.reason}" for item in failed)
        return GroupingResult(name, grouping, tuple(results), None, reason)
    total = sum((result.us or 0.0) * counts[result.kernel.key][1] for result in results)
    return GroupingResult(name, grouping, tuple(results), total)
