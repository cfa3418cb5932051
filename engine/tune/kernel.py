"""The inner search: tune one kernel alone, over its own forks, with the whole patience budget.

Candidates are asked for in a window of fixed size, compile in parallel, and are told to the search in the order
they were asked for, so that the path depends on the seed, the database and the prior, and on nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field

from engine.codegen import acf_of
from engine.events import CandidateStarted, KernelFinished, KernelStarted, KernelState
from engine.ir.kernel import Kernel
from engine.measure import DeviceError
from engine.search import Proposal, Search, StopReason
from engine.tune.control import Skipped, Stopped
from engine.tune.controlled import experience_of, searches_after, setbacks_of
from engine.tune.corners import corners_of, forbids
from engine.tune.experience import Experience
from engine.tune.finish import Finish
from engine.tune.problem import Problem
from engine.tune.scoring import kernel_search
from engine.tune.set_aside import Setbacks
from engine.tune.settings import CounterObjective, Objective
from engine.tune.suggested import SuggestionsFirst
from engine.tune.sweeping import submit_ranking
from engine.tune.tree import TreeReporter
from engine.tune.workbench import Workbench, answered
from engine.vocabulary import Measurement, Schedule, Status

SAME_CAUSE_LIMIT = 24
"""So many first candidates that all fail the same way end a kernel's search: the rest would too."""


@dataclass(frozen=True, slots=True)
class KernelResult:
    """What a kernel's search found. `us` is the deploy time where there is one, else the ranking time."""

    kernel: Kernel
    schedule: Schedule | None
    us: float | None
    reason: str


@dataclass(slots=True)
class _InFlight:
    """`kept` says that the answer is in the database, or is none; the search may not have been told of it yet."""

    proposal: Proposal
    schedule: Schedule
    answer: Future[Measurement]
    kept: bool = False


@dataclass(slots=True)
class _Progress:
    """`plain` is the best without ptxas controls, `controlled` are the candidates with some that were answered."""

    experience: Experience
    setbacks: Setbacks
    best: Measurement | None = None
    trial: int = 0
    causes: set[str] = field(default_factory=set)
    plain: Measurement | None = None
    controlled: set[Schedule] = field(default_factory=set)

    def take(self, measurement: Measurement, objective: Objective | CounterObjective) -> bool:
        """Note one answered candidate; whether it is the best so far."""
        self.experience.learn(measurement)
        if acf_of(measurement.schedule):
            self.controlled.add(measurement.schedule)
        elif objective.prefers(measurement, self.plain):
            self.plain = measurement
        best = objective.prefers(measurement, self.best)
        if best:
            self.best = measurement
        return best


def tune_kernel(bench: Workbench, problem: Problem, kernel: Kernel) -> KernelResult:
    """Search the kernel's schedules until patience ends; raises Stopped if a stop was asked for meanwhile.

    A search that a person skips ends with what it has.
    """
    corners = corners_of(bench.forbidden, kernel)
    bench.tell(
        KernelStarted,
        kernel=kernel.key,
        patience=bench.patience(kernel),
        forbidden=tuple(str(corner) for corner in corners),
    )
    if declined := problem.declined_because(kernel):
        result = KernelResult(kernel, None, None, declined)
        _report_end(bench, result, KernelState.FAILED)
        return result
    progress = _Progress(experience_of(problem, kernel), setbacks_of(problem, kernel))
    guiding = progress.experience.guiding if progress.experience.offered else None
    forbidden, target = progress.setbacks.also(forbids(corners)), bench.device.target
    search = kernel_search(bench.settings, bench.prior, problem, kernel, target, forbidden, guiding)
    reporter = TreeReporter(bench, kernel.key)
    finish = Finish(bench, kernel)
    window: deque[_InFlight] = deque()
    try:
        stop = _walk(bench, kernel, search, reporter, finish, progress, window)
        for last in searches_after(bench, problem, kernel, finish.fastest, forbidden):
            _walk(bench, kernel, last, TreeReporter(bench, kernel.key), finish, progress, window)
        finish.drain()
    except Skipped:
        stop = "skipped on request"
        _keep_all(bench, window, finish, reporter, progress)
    except (Stopped, DeviceError) as ending:
        _keep_all(bench, window, finish, reporter, progress)
        if isinstance(ending, DeviceError):
            raise
        _report_end(bench, _conclude(kernel, progress, finish, "stopped"), KernelState.DONE)
        raise
    finish.wait(len(progress.controlled))
    bench.learn(kernel)
    result = _conclude(kernel, progress, finish, stop)
    state = KernelState.FAILED if result.us is None else KernelState.DONE
    _report_end(bench, result, state)
    return result


def _walk(
    bench: Workbench,
    kernel: Kernel,
    search: Search,
    reporter: TreeReporter,
    finish: Finish,
    progress: _Progress,
    window: deque[_InFlight],
) -> str:
    """Ask, measure and tell until the search stops; returns why it stopped, in words."""
    first = SuggestionsFirst(search, bench.recorder.suggested(kernel))
    while True:
        bench.checkpoint()
        bench.control.check_skip(kernel.key)
        search.patience = bench.patience(kernel)
        while len(window) < search.ahead(bench.settings.window):
            with bench.tally.searching():
                proposal = first.ask()
            if proposal is None:
                break
            reporter.asked(proposal)
            window.append(_start(bench, kernel, proposal, reporter))
        if not window:
            return _stop_text(search)
        head = window[0]
        measurement = _await(bench, kernel, head, window, finish)
        window.popleft()
        _told(bench, kernel, search, reporter, finish, progress, head, measurement)
        if progress.best is None and progress.trial >= SAME_CAUSE_LIMIT and len(progress.causes) == 1:
            return f"the first {progress.trial} candidates all failed the same way: {next(iter(progress.causes))}"


def _start(bench: Workbench, kernel: Kernel, proposal: Proposal, reporter: TreeReporter) -> _InFlight:
    schedule = Schedule.of(proposal.knobs)
    known = bench.recorder.ranking(kernel, schedule)
    if known is not None:
        return _InFlight(proposal, schedule, answered(known), kept=True)
    bench.measuring.set()
    bench.tell(CandidateStarted, kernel=kernel.key, node=reporter.leaf_id(proposal), schedule=str(schedule))
    return _InFlight(proposal, schedule, submit_ranking(bench.device, kernel, schedule, bench.misranked))


def _await(
    bench: Workbench, kernel: Kernel, head: _InFlight, window: Iterable[_InFlight], finish: Finish
) -> Measurement:
    """Wait for the measurement of the window's head, looking up now and then for an abort or a skip.

    What ends before it is kept at once, so that a killed run loses only what has not ended.
    """
    while not head.answer.done():
        pending = [item for item in window if item is not head and not item.kept]
        answers = [head.answer, *(item.answer for item in pending), *finish.waiting]
        wait(answers, timeout=0.1, return_when=FIRST_COMPLETED)
        for item in pending:
            _keep(bench, item)
        finish.collect()
        if bench.control.aborted:
            raise Stopped
        bench.tell_acts()
        bench.control.check_skip(kernel.key)
    try:
        return head.answer.result()
    except CancelledError:
        raise Stopped from None


def _keep(bench: Workbench, item: _InFlight) -> None:
    """Keep a measurement that ended out of turn; its number is that of its proposal, as when the search is told."""
    answer = item.answer
    if not answer.done():
        return
    item.kept = True
    if not answer.cancelled() and answer.exception() is None:
        bench.recorder.record(answer.result(), run=bench.run, trial=item.proposal.number, nodes=())


def _keep_all(
    bench: Workbench, window: Iterable[_InFlight], finish: Finish, reporter: TreeReporter, progress: _Progress
) -> None:
    """The search ends here and waits for nothing more; what was measured ahead of it is kept, and the best counts."""
    for item in window:
        if not item.kept:
            _keep(bench, item)
        answer = item.answer
        if answer.done() and not answer.cancelled() and answer.exception() is None:
            _counted(bench, progress, answer.result(), reporter.leaf_id(item.proposal))
        answer.cancel()
    finish.let_go()


def _counted(bench: Workbench, progress: _Progress, measurement: Measurement, leaf: str) -> None:
    """Count and tell a candidate that the search isn't told of any more."""
    if measurement.status is not Status.NOT_RECORDED:
        progress.trial += 1
        bench.tally.count(measurement)
        best = progress.take(measurement, bench.settings.objective)
        bench.tell_measured(measurement, node=leaf, trial=progress.trial, best=best)


def _told(
    bench: Workbench,
    kernel: Kernel,
    search: Search,
    reporter: TreeReporter,
    finish: Finish,
    progress: _Progress,
    head: _InFlight,
    measurement: Measurement,
) -> None:
    us, value = measurement.us, bench.settings.objective.cost(measurement)
    with bench.tally.searching():
        if measurement.status is Status.NOT_RECORDED:
            search.skip(head.proposal)
        else:
            search.tell(head.proposal, None if value is None else 1.0 / value)
    if measurement.status is not Status.NOT_RECORDED:
        progress.trial += 1
        bench.tally.count(measurement)
    if measurement.failure is not None:
        progress.causes.add(f"{measurement.failure.kind}: {measurement.failure.cause}")
    best = progress.take(measurement, bench.settings.objective)
    nodes = reporter.told(head.proposal)
    bench.recorder.record(measurement, run=bench.run, trial=progress.trial, nodes=nodes)
    bench.tell_measured(measurement, node=reporter.leaf_id(head.proposal), trial=progress.trial, best=best)
    reporter.emit_visits(nodes)
    progress.setbacks.learn(bench, measurement)
    if us is not None and progress.best is not None and progress.best.us is not None:
        finish.consider(measurement, progress.best.us, reporter.leaf_record(head.proposal))


def _stop_text(search: Search) -> str:
    reasons = {
        StopReason.PATIENCE: f"patience: {search.patience} candidates without a new best",
        StopReason.EXHAUSTED: "every candidate of the space was tried",
        StopReason.LIMIT: "the limit of candidates was reached",
    }
    return reasons[search.stopped] if search.stopped is not None else "nothing left to try"


def _conclude(kernel: Kernel, progress: _Progress, finish: Finish, stop: str) -> KernelResult:
    result = finish.result()
    if result.us is not None:
        return KernelResult(kernel, result.schedule, result.us, stop)
    if known := progress.plain or progress.best:
        return KernelResult(kernel, known.schedule, known.us, stop)
    return KernelResult(kernel, None, None, stop if progress.trial else "no candidate could be tried")


def _report_end(bench: Workbench, result: KernelResult, state: KernelState) -> None:
    bench.tell(
        KernelFinished,
        kernel=result.kernel.key,
        state=state,
        reason=result.reason,
        best_us=result.us,
        best_schedule=str(result.schedule or ""),
    )
