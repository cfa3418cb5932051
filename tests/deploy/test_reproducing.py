"""The command that measures a schedule again names a program that launches its kernel, and the knobs in full."""

from __future__ import annotations

import shlex

import pytest

from engine.cli.knob_text import schedule_line
from engine.data import demo_database
from engine.deploy import measuring_command, pin_context
from engine.deploy.comparing import read_knobs
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
        ranked, deployed = (store.best(key, context, regime) for regime in (Regime.RANKING, Regime.DEPLOY))
        if ranked is None:
            continue
        words = shlex.split(measuring_command(store, key, context, ranked.schedule))
        if not words:
            assert not store.launching_targets(key, context)
            continue
        seen += 1
        assert words[:4] == ["emmy", "run", "--program", store.launching_targets(key, context)[0]]
        assert words[4:6] == ["--kernel", key]
        assert words[-2:] == ["--db", str(store.path)]
        if deployed is None or deployed.schedule == ranked.schedule:
            assert words[6:-2] == ["--bench"]
        else:
            assert words[6] == "--ab"
            assert Schedule.of(read_knobs(words[7])) == ranked.schedule
            assert schedule_line(words[7])
    assert seen > 10


def test_what_no_program_launches_has_none(store: Store) -> None:
    assert measuring_command(store, "nothing", "nowhere", Schedule.of({"BLOCK_M": 64})) == ""
