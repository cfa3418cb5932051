"""A controls file that only breaks a kernel's candidates is left alone from then on, and that is told."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.events import ControlsChecked, Event, Logged, Measured
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.store import Store
from engine.tune.set_aside import BREAKING, SETBACKS, SetAside, Setbacks
from engine.tune.settings import Settings
from engine.tune.workbench import Workbench
from engine.vocabulary import Failure, FailureKind, Measurement, Option, Regime, Schedule, Status, Timing

from .test_controlled import FAST, WRONG, Bench, Turns, logged, tuned

ACF = "f" * 64
NOBODY = cast(Workbench, None)


def a_kernel() -> Kernel:
    build = GraphBuilder()
    operand = build.input(TensorSpec.contiguous((8, 8), "float32"))
    return Kernel("pointwise", build.build(build.add("exp", operand)), "exp")


class Told(SetAside):
    """Keeps what would be told."""

    def __init__(self) -> None:
        super().__init__({})
        self.said: list[tuple[str, str]] = []

    def add(self, bench: Workbench, kernel: Kernel, sha256: str, cause: str) -> None:
        self.said.append((sha256, cause))


def answer(schedule: int, acf: str, kind: FailureKind | None) -> Measurement:
    timing = Timing(1.0, 1.0, 1.0) if kind is None else None
    failure = None if kind is None else Failure(kind, f"cause {schedule}")
    status = Status.OK if kind is None else Status.FAILED
    knobs = Schedule.of({"N": schedule, "ACF": acf})
    return Measurement("k", knobs, Regime.RANKING, "c", status, timing, failure=failure)


def after(*answers: Measurement) -> tuple[Told, Setbacks]:
    told = Told()
    setbacks = Setbacks(a_kernel(), told)
    for one in answers:
        setbacks.learn(NOBODY, one)
    return told, setbacks


def forbidden(setbacks: Setbacks, acf: str = ACF) -> bool:
    entered = setbacks.also(None)
    assert entered is not None
    return entered((Option((("N", 9),)), Option((("ACF", acf),))))


def test_the_second_broken_candidate_sets_a_file_aside_once() -> None:
    told, setbacks = after(*(answer(n, ACF, FailureKind.HANG) for n in range(4)))
    assert told.said == [(ACF, "2 candidates failed and none ran (hang: cause 0, hang: cause 1)")]
    assert forbidden(setbacks)
    assert not forbidden(setbacks, "")
    assert not forbidden(setbacks, "0" * 64)


@pytest.mark.parametrize("first", [True, False])
def test_one_that_ran_once_is_kept(first: bool) -> None:
    ran, broken = answer(0, ACF, None), [answer(n, ACF, FailureKind.CRASH) for n in (1, 2)]
    order = [ran, *broken] if first else [broken[0], ran, broken[1]]
    told, setbacks = after(*order)
    assert told.said == []
    assert not forbidden(setbacks)


def test_a_schedule_that_fails_without_controls_too_blames_no_file() -> None:
    crash = FailureKind.CRASH
    told, setbacks = after(*(answer(n, acf, crash) for n in range(3) for acf in ("", ACF)))
    assert told.said == []
    assert not forbidden(setbacks)


@pytest.mark.parametrize("kind", sorted(set(FailureKind) - BREAKING))
def test_what_costs_no_process_is_no_setback(kind: FailureKind) -> None:
    assert after(*(answer(n, ACF, kind) for n in range(5)))[0].said == []


def test_what_was_forbidden_before_stays_so() -> None:
    told = Told()
    setbacks = Setbacks(a_kernel(), told)
    either = setbacks.also(lambda path: len(path) == 1)
    assert either is not None
    assert either((Option((("N", 1),)),))
    assert not either(())
    assert Setbacks(a_kernel(), None).also(None) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["", ACF]), st.sampled_from([None, *FailureKind]))))
def test_set_aside_means_enough_setbacks_and_nothing_that_ran_before(
    asked: list[tuple[int, str, FailureKind | None]],
) -> None:
    told, setbacks = after(*(answer(*one) for one in asked))
    broken = sum(acf == ACF and kind in BREAKING for _, acf, kind in asked)
    assert len(told.said) <= 1
    assert forbidden(setbacks) == bool(told.said)
    assert not told.said or broken >= SETBACKS
    if all(kind is not None for _, acf, kind in asked if acf) and all(
        kind is None for _, acf, kind in asked if not acf
    ):
        assert bool(told.said) == (broken >= SETBACKS)


def last_checked(events: list[Event]) -> ControlsChecked:
    return next(event for event in reversed(events) if isinstance(event, ControlsChecked))


def test_a_search_leaves_it_alone_and_says_so(tmp_path: Path) -> None:
    settings = Settings(patience=150, window=1)
    events = tuned(tmp_path / "t.db", Bench(Turns()), FAST, WRONG, settings=settings)
    tried = [one for one in events if isinstance(one, Measured) and one.trial and WRONG.sha256 in one.schedule]
    assert [one.failure for one in tried] == [FailureKind.WRONG_RESULT] * SETBACKS
    checked = last_checked(events)
    assert (checked.on, checked.offered, checked.set_aside) == (True, 2, (WRONG.sha256,))
    assert checked.set_aside_kernels == (tried[0].kernel,)
    assert checked.set_aside_causes == ("2 candidates failed and none ran (wrong result: its error is 0.7)",)
    assert logged(events, "controls file wrong is set aside: 2 candidates failed and none ran")
    assert [event.level for event in events if isinstance(event, Logged) and "set aside" in event.text] == ["warning"]
    assert any(isinstance(one, Measured) and one.trial and FAST.sha256 in one.schedule for one in events)
    with Store.open(tmp_path / "t.db") as store:
        run = store.runs()[-1]
        assert store.controls_checked(run.id) == checked
        rows = store.variants(top=1000)[0].rows
    failed = [row for row in rows if row.schedule["ACF"] == WRONG.sha256]
    assert [row.failure for row in failed] == [FailureKind.WRONG_RESULT] * SETBACKS


def test_a_rerun_sets_the_same_aside_and_launches_nothing(tmp_path: Path) -> None:
    first = tuned(tmp_path / "t.db", Bench(Turns()), FAST, WRONG)
    device = Bench(Turns())
    again = tuned(tmp_path / "t.db", device, FAST, WRONG)
    assert device.launches == []
    assert last_checked(again).set_aside == last_checked(first).set_aside == (WRONG.sha256,)
    paths = [[one.schedule for one in run if isinstance(one, Measured) and one.trial] for run in (first, again)]
    assert paths[0] == paths[1]


def test_schedules_first_tries_each_file_once(tmp_path: Path) -> None:
    events = tuned(tmp_path / "t.db", Bench(Turns()), FAST, WRONG, after=True)
    assert last_checked(events).set_aside == ()
