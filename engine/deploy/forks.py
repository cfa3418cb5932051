"""How a program's structural forks are answered: by recorded groupings, else by walking what is known of kernels.

The recorded groupings of the same program in the same context decide: the fastest assembled graph, else the smallest
sum of kernels. Where none is recorded, the forks are walked, measured before predicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from engine.deploy.fitting import fitted, program_key
from engine.deploy.walking import walk_forks
from engine.ir.plan import Grouping, Program
from engine.prior import Prior
from engine.store import RecordedGrouping, Store
from engine.vocabulary import Option, Regime, Schedule, Target


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
    where no other answer was recorded). A predicted fork has no row. `compared` says what `runner_up_us` is, and
    `compared_us` is the same of the chosen answer, None where it has none: a graph and a sum of kernels are no two
    times of one thing. Where no other answer has a time, it is the first that a run entered, and `runner_up_reason` is
    what the run said of it: that it can't win, or why it failed.
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
    compared: ForkSource | None = None
    compared_us: float | None = None
    runner_up_reason: str = ""


@dataclass(frozen=True, slots=True)
class FoundGrouping:
    """A grouping with what decided its forks; times are those that it was recorded with, in us, and belong to
    `schedules`, by structural key ({} where the recording doesn't say). `row` is the recorded grouping's id.
    What was measured up to `known_until`, in seconds since 1970, a run knew when it put graphs of the program together.
    """

    grouping: Grouping
    forks: tuple[ForkChoice, ...]
    pdl: bool = False
    us: float | None = None
    sum_us: float | None = None
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    row: str = ""
    known_until: float = 0.0


def grouping_candidates(
    subject: Program | Grouping, store: Store, places: Sequence[str], target: Target, prior: Prior
) -> dict[str, FoundGrouping]:
    """What each of these contexts says of groupings; of those but the first only such as know something."""
    if isinstance(subject, Program):
        recorded = {key: found for key in places if (found := _recorded(subject, store, key)) is not None}
        if recorded:
            return recorded
        given = _walked(subject, store, places[0], target, prior)
    else:
        forks = tuple(ForkChoice(*_decision(option), ForkSource.GIVEN, None, None) for option in subject.decisions)
        given = FoundGrouping(subject, forks)
    pinned = {(stored.pin.kernel_key, stored.context_key) for stored in store.pins()}
    kernels = list(given.grouping.kernel_counts())
    known = [
        key
        for key in places[1:]
        if any((kernel, key) in pinned or store.best_known(kernel, key) is not None for kernel in kernels)
    ]
    return dict.fromkeys([places[0], *known], given)


def _recorded(program: Program, store: Store, context_key: str) -> FoundGrouping | None:
    """The fastest recorded grouping of the same program in this context, if one was measured."""
    entered = list(recorded_groupings(program, store, context_key))
    rows = [row for row in entered if _time(row) is not None]
    best = _fastest(rows)
    if best is None:
        return None
    with_pdl = best.pdl_us is not None and best.pdl_us == best.whole_us
    forks = tuple(_fork_choice(option, best, entered) for option in best.decisions)
    ended = {run.id: run.ended_at or run.started_at for run in store.runs()}
    known_until = max((ended.get(_run_of(row), 0.0) for row in rows if row.whole_us is not None), default=0.0)
    found = (best.grouping, forks, with_pdl, best.whole_us, best.sum_us, best.schedules)
    return FoundGrouping(*found, best.id, known_until)


def recorded_groupings(program: Program, store: Store, context_key: str) -> Iterator[RecordedGrouping]:
    """Every recorded grouping, in this context, of a program that computes the same, in this program's order of inputs.

    Left out are those that prepare values of what is no weight of this program.
    """
    key = program_key(program.graph)
    for run in store.runs():
        if run.context_key != context_key:
            continue
        read = store.readable_program(run.id)
        if read is None or program_key(read.graph) != key:
            continue
        for row in store.recorded_groupings(run.id):
            grouping = fitted(row.grouping, read.graph, program.graph)
            if grouping is not None:
                yield replace(row, grouping=grouping)


def _run_of(row: RecordedGrouping) -> str:
    return row.id.rpartition("/")[0]


def _fastest(rows: Sequence[RecordedGrouping]) -> RecordedGrouping | None:
    """The fastest graph; where none was timed as a whole, the smallest sum."""
    whole = [row for row in rows if row.whole_us is not None]
    return min(whole or rows, key=lambda row: _time(row) or 0.0, default=None)


def _time(row: RecordedGrouping) -> float | None:
    return row.whole_us if row.whole_us is not None else row.sum_us


def _fork_choice(option: Option, best: RecordedGrouping, entered: Sequence[RecordedGrouping]) -> ForkChoice:
    fork, answer = _decision(option)
    others = [row for row in entered if any(_decision(o)[0] == fork and o != option for o in row.decisions)]
    second = _fastest([row for row in others if _time(row) is not None])
    assembled = best.whole_us is not None
    chosen = ForkChoice(
        fork,
        answer,
        ForkSource.ASSEMBLED if assembled else ForkSource.SUM,
        _time(best),
        Regime.DEPLOY if assembled else Regime.RANKING,
        best.id,
    )
    if second is None:
        untimed = next((row for row in others if row.reason), None)
        return chosen if untimed is None else replace(chosen, **_named(fork, untimed), runner_up_reason=untimed.reason)
    whole = assembled and second.whole_us is not None
    return replace(
        chosen,
        **_named(fork, second),
        runner_up_us=second.whole_us if whole else second.sum_us,
        compared=ForkSource.ASSEMBLED if whole else ForkSource.SUM,
        compared_us=best.whole_us if whole else best.sum_us,
    )


def _named(fork: str, row: RecordedGrouping) -> dict[str, Any]:
    """The fields that say which grouping is the runner-up."""
    answer = next((_decision(option)[1] for option in row.decisions if _decision(option)[0] == fork), "")
    return {"runner_up": answer, "runner_up_row": row.id}


def _walked(program: Program, store: Store, context_key: str, target: Target, prior: Prior) -> FoundGrouping:
    """The forks answered one after the other by what is known or predicted of the kernels that an answer makes."""
    grouping, steps = walk_forks(program.graph, store, context_key, target, prior)
    forks = tuple(
        ForkChoice(
            *(step.fork, step.answer, ForkSource.PRIOR, step.us, None, "", step.runner_up, step.runner_up_us, ""),
            *((ForkSource.PRIOR, step.us) if step.runner_up else (None, None)),
        )
        for step in steps
    )
    return FoundGrouping(grouping, forks)


def _decision(option: Option) -> tuple[str, str]:
    """Fork and answer."""
    names = " ".join(name for name, _ in option.knobs)
    return names, " ".join(str(value) for _, value in option.knobs)
