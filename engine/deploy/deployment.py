"""What a program would run as now: one grouping, a schedule for each of its kernels, and what decided each of them.

A structural fork is decided by the recorded groupings of the same program in the same context: the fastest assembled
graph, else the smallest sum of kernels. Where none is recorded, the forks are walked with what is known of each kernel,
measured before predicted. `evidence` decides the kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.codegen import declined_because, is_generated
from engine.deploy.evidence import Evidence, Source, evidence_lines
from engine.deploy.fitting import fitted, program_key
from engine.deploy.walking import walk_forks
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping, Program
from engine.prior import Prior
from engine.store import RecordedGrouping, Store
from engine.vocabulary import Option, Regime, Schedule, Target


class DeploymentError(ValueError):
    """Nothing can be deployed; the text is one sentence for a person."""


class NoEvidenceError(DeploymentError):
    """Only a prediction would decide, and predictions were refused."""


class ForkSource(StrEnum):
    """What decided a structural fork, strongest first."""

    ASSEMBLED = "assembled graph"
    SUM = "sum of the kernels"
    PRIOR = "prediction of the prior"
    GIVEN = "given"


@dataclass(frozen=True, slots=True)
class ForkChoice:
    """One structural fork: `us` is the time of the program with this answer, `row` the recorded grouping's id.

    `runner_up` is the fastest recorded grouping with another answer there: its answer, time and row ("", None and ""
    where no other answer was recorded). A predicted fork has no row.
    """

    fork: str
    answer: str
    source: ForkSource
    us: float | None
    regime: Regime | None
    row: str = ""
    runner_up: str = ""
    runner_up_us: float | None = None
    runner_up_row: str = ""


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """One kernel of the grouping, `count` calls of it. `chosen` is None for a library's call, which has no schedule.

    `lines` are all that was looked at, strongest first; `runner_up` is the strongest of those that says another
    schedule, or the second fastest measured one.
    """

    kernel: Kernel
    count: int
    chosen: Evidence | None
    lines: tuple[Evidence, ...] = ()
    runner_up: Evidence | None = None

    @property
    def schedule(self) -> Schedule | None:
        return self.chosen.schedule if self.chosen else None

    @property
    def regime(self) -> Regime | None:
        """The regime of the time that decided; None for a prediction or a pin without a time."""
        return regime_of(self.chosen) if self.chosen else None


@dataclass(frozen=True, slots=True)
class Deployment:
    """The chosen grouping with a schedule a kernel. `us` is its recorded time as one graph, `sum_us` of its kernels.

    With `pdl` its kernels are launched with programmatic dependent launch, which made the recorded graph faster.
    """

    grouping: Grouping
    kernels: tuple[KernelChoice, ...]
    forks: tuple[ForkChoice, ...]
    context_key: str
    target: Target
    pdl: bool = False
    us: float | None = None
    sum_us: float | None = None

    @property
    def schedules(self) -> dict[str, Schedule]:
        """Schedules by structural key, of all kernels that have a text of their own."""
        return {item.kernel.key: item.chosen.schedule for item in self.kernels if item.chosen is not None}

    @property
    def predicted(self) -> list[str]:
        """Names of the forks and kernels that no measurement and no pin decides."""
        forks = [item.fork for item in self.forks if item.source is ForkSource.PRIOR]
        weak = (Source.PRIOR, Source.FIRST)
        kernels = [kernel_name(k.kernel) for k in self.kernels if k.chosen is not None and k.chosen.source in weak]
        return forks + kernels


def deployment(
    subject: Program | Grouping,
    store: Store,
    context_key: str,
    target: Target,
    prior: Prior,
    *,
    strict: bool = False,
    pins: bool = True,
) -> Deployment:
    """What `subject` would run as in this context on this chip: of a program the best grouping, of a grouping itself.

    Raises NoEvidenceError if `strict` and something would be decided by a prediction, DeploymentError for a kernel that
    can't be built, and StoreError for a database that can't be read. `pins` False decides as if none were there.
    """
    if isinstance(subject, Grouping):
        forks = tuple(ForkChoice(*_decision(option), ForkSource.GIVEN, None, None) for option in subject.decisions)
        found = _Found(subject, forks)
    else:
        found = _recorded(subject, store, context_key) or _walked(subject, store, context_key, target, prior)
    kernels = tuple(
        kernel_choice(kernel, count, store, context_key, target, prior, pins=pins)
        for kernel, count in found.grouping.kernel_counts().values()
    )
    chosen = Deployment(
        found.grouping, kernels, found.forks, context_key, target, found.pdl, found.us, _sum_us(kernels, found.sum_us)
    )
    if strict and chosen.predicted:
        raise NoEvidenceError(
            f"no measurement and no pin decides {_listed(chosen.predicted)}: tune the program in this context, or allow"
            " predictions"
        )
    return chosen


def kernel_choice(
    kernel: Kernel,
    count: int,
    store: Store,
    context_key: str,
    target: Target,
    prior: Prior,
    *,
    pins: bool = True,
    every_line: bool = False,
) -> KernelChoice:
    """What one kernel would run as now. With `every_line` the prediction is there even where a time decides.

    Raises DeploymentError for a kernel that has no legal schedule on `target`.
    """
    if not is_generated(kernel):
        return KernelChoice(kernel, count, None)
    lines: list[Evidence] = []
    chosen: Evidence | None = None
    for line in evidence_lines(kernel, store, context_key, target, prior):
        if line.source is Source.PIN and not pins:
            continue
        if chosen is not None and not every_line and line.source in (Source.PRIOR, Source.FIRST):
            break
        lines.append(line)
        if chosen is None and not line.illegal:
            chosen = line
    if chosen is None:
        reason = declined_because(kernel) or "no schedule of it is legal on this chip"
        raise DeploymentError(f"{kernel_name(kernel)} can't be built: {reason.rstrip('.')}")
    return KernelChoice(kernel, count, chosen, tuple(lines), _runner_up(kernel, chosen, lines, store, context_key))


def deploys_now(store: Store, kernel_key: str, context_key: str, prior: Prior) -> KernelChoice:
    """What a recorded kernel would run as now in a recorded context, with every line of evidence.

    Raises StoreError for a kernel that isn't there, DeploymentError for one that can't be built.
    """
    target = store.target(context_key)
    return kernel_choice(store.kernel(kernel_key), 1, store, context_key, target, prior, every_line=True)


def regime_of(line: Evidence) -> Regime | None:
    """The regime of a line's time; None for a prediction."""
    return {Source.DEPLOY: Regime.DEPLOY, Source.RANKING: Regime.RANKING}.get(line.source)


def kernel_name(kernel: Kernel) -> str:
    """What people call a kernel: its label, with the first digits of its key."""
    return f"{kernel.label or kernel.family} ({kernel.key[:8]})"


@dataclass(frozen=True, slots=True)
class _Found:
    grouping: Grouping
    forks: tuple[ForkChoice, ...]
    pdl: bool = False
    us: float | None = None
    sum_us: float | None = None


def _recorded(program: Program, store: Store, context_key: str) -> _Found | None:
    """The fastest recorded grouping of the same program in this context, if one was measured."""
    rows = [row for row in recorded_groupings(program, store, context_key) if _time(row) is not None]
    best = _fastest(rows)
    if best is None:
        return None
    with_pdl = best.pdl_us is not None and best.pdl_us == best.whole_us
    forks = tuple(_fork_choice(option, best, rows) for option in best.decisions)
    return _Found(best.grouping, forks, with_pdl, best.whole_us, best.sum_us)


def recorded_groupings(program: Program, store: Store, context_key: str) -> Iterator[RecordedGrouping]:
    """Every recorded grouping, in this context, of a program that computes the same, in this program's order of inputs.

    Left out are those that prepare values of what is no weight of this program.
    """
    key = program_key(program.graph)
    for run in store.runs():
        if run.context_key != context_key:
            continue
        recorded = store.program(run.id).graph
        if program_key(recorded) != key:
            continue
        for row in store.recorded_groupings(run.id):
            grouping = fitted(row.grouping, recorded, program.graph)
            if grouping is not None:
                yield replace(row, grouping=grouping)


def _fastest(rows: Sequence[RecordedGrouping]) -> RecordedGrouping | None:
    """The fastest graph; where none was timed as a whole, the smallest sum."""
    whole = [row for row in rows if row.whole_us is not None]
    return min(whole or rows, key=lambda row: _time(row) or 0.0, default=None)


def _time(row: RecordedGrouping) -> float | None:
    return row.whole_us if row.whole_us is not None else row.sum_us


def _fork_choice(option: Option, best: RecordedGrouping, rows: Sequence[RecordedGrouping]) -> ForkChoice:
    fork, answer = _decision(option)
    others = [row for row in rows if any(_decision(o)[0] == fork and o != option for o in row.decisions)]
    second = _fastest(others)
    assembled = best.whole_us is not None
    return ForkChoice(
        fork,
        answer,
        ForkSource.ASSEMBLED if assembled else ForkSource.SUM,
        _time(best),
        Regime.DEPLOY if assembled else Regime.RANKING,
        best.id,
        next((_decision(o)[1] for o in second.decisions if _decision(o)[0] == fork), "") if second else "",
        _time(second) if second else None,
        second.id if second else "",
    )


def _walked(program: Program, store: Store, context_key: str, target: Target, prior: Prior) -> _Found:
    """The forks answered one after the other by what is known or predicted of the kernels that an answer makes."""
    grouping, steps = walk_forks(program.graph, store, context_key, target, prior)
    forks = tuple(
        ForkChoice(step.fork, step.answer, ForkSource.PRIOR, step.us, None, "", step.runner_up, step.runner_up_us)
        for step in steps
    )
    return _Found(grouping, forks)


def _decision(option: Option) -> tuple[str, str]:
    """Fork and answer."""
    names = " ".join(name for name, _ in option.knobs)
    return names, " ".join(str(value) for _, value in option.knobs)


def _runner_up(
    kernel: Kernel, chosen: Evidence, lines: Sequence[Evidence], store: Store, context_key: str
) -> Evidence | None:
    """The next best measured schedule of the regime that decided; else the strongest line with another schedule."""
    regime = regime_of(chosen)
    if regime is not None:
        second = store.second_best(kernel.key, context_key, regime, chosen.schedule)
        if second is not None:
            return Evidence(chosen.source, second.schedule, second.us)
    return next((line for line in lines if line.schedule != chosen.schedule and not line.illegal), None)


def _sum_us(kernels: Sequence[KernelChoice], recorded: float | None) -> float | None:
    """The sum of the measured times that decided; what the recording says where a kernel has none."""
    total = 0.0
    for item in kernels:
        if item.chosen is None or item.chosen.us is None or item.chosen.source in (Source.PRIOR, Source.FIRST):
            return recorded
        total += item.chosen.us * item.count
    return total


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
