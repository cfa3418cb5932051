"""The inner search: tune one kernel alone, over its own forks, with the whole patience budget.

Candidates are asked for in a window of fixed size, compile in parallel, and are told to the search in the order
they were asked for, so that the path depends on the seed, the database and the prior, and on nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field

from engine.events import CandidateStarted, KernelFinished, KernelStarted, KernelState
from engine.ir.kernel import Kernel
from engine.measure import DeviceError
from engine.search import Proposal, Search, StopReason
from engine.tune.control import Stopped
from engine.tune.finish import Finish
from engine.tune.problem import Problem
from engine.tune.scoring import kernel_search
from engine.tune.tree import TreeReporter
from engine.tune.workbench import Workbench, answered
from engine.vocabulary import Measurement, Regime, Schedule, Status

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
    best: Measurement | None = None
    trial: int = 0
    causes: set[str] = field(default_factory=set)


def tune_kernel(bench: Workbench, problem: Problem, kernel: Kernel) -> KernelResult:
    """Search the kernel's schedules until patience ends; raises Stopped if a stop was asked for meanwhile."""
    bench.tell(KernelStarted, kernel=kernel.key, patience=bench.settings.patience)
    if declined := problem.declined_because(kernel):
        result = KernelResult(kernel, None, None, declined)
        _report_end(bench, result, KernelState.FAILED)
        return result
    search = kernel_search(bench.settings, bench.prior, problem, kernel, bench.device.target)
    reporter = TreeReporter(bench, kernel.key)
    finish = Finish(bench, kernel)
    progress = _Progress()
    window: deque[_InFlight] = deque()
    try:
        stop = _walk(bench, kernel, search, reporter, finish, progress, window)
    except (Stopped, DeviceError) as ending:
        _keep_all(bench, window, finish)
        if isinstance(ending, DeviceError):
            raise
        _report_end(bench, _conclude(kernel, progress, finish, "stopped"), KernelState.DONE)
        raise
    finish.wait()
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
    while True:
        bench.checkpoint()
        while len(window) < search.ahead(bench.settings.window):
            with bench.tally.searching():
                proposal = search.ask()
            if proposal is None:
                break
            reporter.asked(proposal)
            window.append(_start(bench, kernel, proposal, reporter))
        if not window:
            return _stop_text(search)
        head = window.popleft()
        measurement = _await(bench, head, window, finish)
        _told(bench, kernel, search, reporter, finish, progress, head, measurement)
        if progress.best is None and progress.trial >= SAME_CAUSE_LIMIT and len(progress.causes) == 1:
            return f"the first {progress.trial} candidates all failed the same way: {next(iter(progress.causes))}"


def _start(bench: Workbench, kernel: Kernel, proposal: Proposal, reporter: TreeReporter) -> _InFlight:
    schedule = Schedule.of(proposal.knobs)
    known = bench.recorder.ranking(kernel, schedule)
    if known is not None:
        return _InFlight(proposal, schedule, answered(known), kept=True)
    bench.tell(CandidateStarted, kernel=kernel.key, node=reporter.leaf_id(proposal), schedule=str(schedule))
    return _InFlight(proposal, schedule, bench.device.submit(kernel, schedule, Regime.RANKING))


def _await(bench: Workbench, head: _InFlight, window: Iterable[_InFlight], finish: Finish) -> Measurement:
    """Wait for the head's measurement, looking up now and then for an abort.

    What ends before it is kept at once, so that a killed run loses only what has not ended.
    """
    while not head.answer.done():
        pending = [item for item in window if not item.kept]
        answers = [head.answer, *(item.answer for item in pending), *finish.waiting]
        wait(answers, timeout=0.1, return_when=FIRST_COMPLETED)
        for item in pending:
            _keep(bench, item)
        finish.collect()
        if bench.control.aborted:
            raise Stopped
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


def _keep_all(bench: Workbench, window: Iterable[_InFlight], finish: Finish) -> None:
    """The search ends here; what was measured ahead of it is kept all the same."""
    for item in window:
        if not item.kept:
            _keep(bench, item)
    with suppress(Stopped, DeviceError):
        finish.collect()


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
    us = measurement.us
    with bench.tally.searching():
        if measurement.status is Status.NOT_RECORDED:
            search.skip(head.proposal)
        else:
            search.tell(head.proposal, None if us is None else 1.0 / us)
    if measurement.status is not Status.NOT_RECORDED:
        progress.trial += 1
        bench.tally.count(measurement)
    if measurement.failure is not None:
        progress.causes.add(f"{measurement.failure.kind}: {measurement.failure.cause}")
    best = us is not None and (progress.best is None or us < (progress.best.us or 0.0))
    if best:
        progress.best = measurement
    nodes = reporter.told(head.proposal)
    bench.recorder.record(measurement, run=bench.run, trial=progress.trial, nodes=nodes)
    bench.tell_measured(measurement, node=reporter.leaf_id(head.proposal), trial=progress.trial, best=best)
    reporter.emit_visits(nodes)
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
    if progress.best is not None:
        return KernelResult(kernel, progress.best.schedule, progress.best.us, stop)
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
