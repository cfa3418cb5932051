"""The command that measures a schedule again names a program that launches its kernel, and the knobs in full."""

from __future__ import annotations

import shlex

import pytest

from engine.cli.knob_text import schedule_line
from engine.data import demo_database
from engine.deploy import deployment, measuring_command, pin_context
from engine.deploy.comparing import read_knobs
from engine.prior import ColdModel
from engine.store import Store
from engine.vocabulary import Regime, Schedule


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory):
    with Store.open(demo_database(tmp_path_factory.mktemp("demo")), read_only=True) as store:
        yield store


def test_the_command_measures_exactly_this_schedule(store: Store) -> None:
    seen = 0
    for key in store.kernel_keys():
        context = pin_context(store, key)
        ranked = store.best(key, context, Regime.RANKING)
        if ranked is None:
            continue
        words = shlex.split(measuring_command(store, key, context, ranked.schedule, ColdModel()))
        if not words:
            assert not store.launching_runs(key, context)
            continue
        seen += 1
        assert words[:4] == ["emmy", "run", "--program", next(iter(store.launching_runs(key, context)))]
        assert words[4:6] == ["--kernel", key]
        assert words[-2:] == ["--db", str(store.path)]
        if words[6] == "--ab":
            assert Schedule.of(read_knobs(words[7])) == ranked.schedule
            assert schedule_line(words[7])
        else:
            assert words[6:-2] == ["--bench"]
    assert seen > 10


def test_what_a_program_deploys_is_timed_and_anything_else_is_timed_against_it(store: Store) -> None:
    """Also where a finalist chosen in turns or one that won in the whole graph deploys, not the lowest time."""
    others = not_the_fastest = 0
    for run in {run.target: run for run in store.runs()}.values():
        target = store.target(run.context_key)
        chosen = deployment(store.program(run.id), store, run.context_key, target, ColdModel())
        for key, schedule in chosen.schedules.items():
            best = store.best(key, run.context_key, Regime.DEPLOY)
            if best is None or store.launching_runs(key, run.context_key).get(run.target) != run.id:
                continue
            second = store.second_best(key, run.context_key, Regime.DEPLOY, best.schedule)
            for asked in {schedule, best.schedule} | ({second.schedule} if second is not None else set()):
                words = shlex.split(measuring_command(store, key, run.context_key, asked, ColdModel()))
                if words[3] == run.target:
                    assert ("--bench" in words) == (asked == schedule)
                    others += asked != schedule
                    not_the_fastest += asked != schedule and asked == best.schedule
    assert not_the_fastest
    assert others > 10


def test_what_no_program_launches_has_none(store: Store) -> None:
    assert measuring_command(store, "nothing", "nowhere", Schedule.of({"BLOCK_M": 64}), ColdModel()) == ""
