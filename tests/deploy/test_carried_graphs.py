"""A file of schedules carries each program's fastest graph, so that what won in place deploys where it is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.deploy import (
    Carried,
    Deployment,
    Received,
    Source,
    deployment,
    deploys_now,
    export_schedules,
    read_schedule_file,
    receive_schedules,
)
from engine.events import Assembled, RunFinished
from engine.prior import ColdModel
from engine.snapshot import Snapshot, apply
from engine.store import IMPORTED, Store, merge_databases
from engine.vocabulary import Measurement, Regime, Schedule, Status, Timing
from tests.tune.fake_device import CONTEXT, FakeDevice
from tests.tune.rig import linear_gelu_program
from tests.tune.test_in_place import SETTINGS, InPlace, tuned

PROGRAM = linear_gelu_program()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tuned") / "a.db"
    tuned(path, InPlace(saves_us=4.0))
    return path


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    with Store.open(tmp_path / "b.db") as store:
        store.record_context(CONTEXT, FakeDevice().target)
    return tmp_path / "b.db"


def exported(path: Path, what: Carried = Carried.BEST, kernel: str = "") -> dict[str, Any]:
    with Store.open(path, read_only=True) as store:
        found = export_schedules(store, kernel, what, "emmy export")
    document: dict[str, Any] = json.loads(found.text)
    assert found.graphs == len(document.get("graphs", []))
    return document


def received(path: Path, document: dict[str, Any]) -> Received:
    with Store.open(path) as store:
        return receive_schedules(store, read_schedule_file(document, "file.json"), "bo")


def deployed(path: Path) -> Deployment:
    with Store.open(path, read_only=True) as store:
        return deployment(PROGRAM, store, CONTEXT.key, FakeDevice().target, ColdModel())


def test_what_won_in_place_is_deployed_where_the_file_is_read(source: Path, empty: Path) -> None:
    there = deployed(source)
    done = received(empty, exported(source))
    assert (done.graphs, done.left_out) == (1, ())
    here = deployed(empty)
    assert here.schedules == there.schedules
    assert (here.us, here.sum_us, here.pdl, here.grouping) == (there.us, there.sum_us, there.pdl, there.grouping)
    assert {item.chosen.source for item in here.kernels if item.chosen is not None} == {Source.IN_PLACE}
    again = received(empty, exported(source))
    assert (again.graphs, again.evidence) == (0, 0)
    assert received(source, exported(empty)).graphs == 0


def test_its_run_is_told_as_any_and_is_not_run(source: Path, empty: Path) -> None:
    received(empty, exported(source))
    with Store.open(empty, read_only=True) as store:
        (run,) = store.runs()
        events = list(store.events_of(run.id))
        snapshot = Snapshot()
        for event in events:
            apply(snapshot, event)
        keys = store.kernel_keys()
        assert run.device == IMPORTED
        assert not any(store.launching_runs(key, CONTEXT.key) for key in keys)
        for key, schedule in deployed(empty).schedules.items():
            assert deploys_now(store, key, CONTEXT.key, ColdModel(), run.id).schedule == schedule
    assert isinstance(events[-1], RunFinished)
    assert [event.assembled_us for event in events if isinstance(event, Assembled)] == [deployed(empty).us]
    assert set(snapshot.kernels) == set(deployed(empty).schedules)


def test_a_schedule_that_was_found_faster_alone_since_then_decides_over_it(source: Path, empty: Path) -> None:
    received(empty, exported(source))
    key, schedule = next(iter(deployed(empty).schedules.items()))
    with Store.open(empty) as store:
        faster = Schedule.of({**schedule.as_dict(), "NUM_WARPS": 4 if schedule.as_dict()["NUM_WARPS"] != 4 else 8})
        timing = Timing(1e-3, 1e-3, 1e-3, (1e-3,))
        result = Measurement(key, faster, Regime.DEPLOY, CONTEXT.key, Status.OK, timing)
        assert store.record_evidence([(result, None)]) == 1
    assert deployed(empty).schedules[key] == faster


def test_the_faster_graph_decides_whoever_timed_it_and_nothing_replaces_a_time(source: Path, tmp_path: Path) -> None:
    slower, faster = tmp_path / "slower.db", tmp_path / "faster.db"
    tuned(slower, InPlace(saves_us=4.0), replace(SETTINGS, in_place=0))
    tuned(faster, InPlace(saves_us=9.0))
    own = deployed(faster)
    assert (deployed(slower).us or 0.0) > (deployed(source).us or 0.0) > (own.us or 0.0)
    for path in (slower, faster):
        with Store.open(path, read_only=True) as store:
            newest = store.latest_run()
        received(path, exported(source))
        with Store.open(path, read_only=True) as store:
            assert store.latest_run() == newest
    assert (deployed(slower).us, deployed(slower).schedules) == (deployed(source).us, deployed(source).schedules)
    assert (deployed(faster).us, deployed(faster).schedules) == (own.us, own.schedules)


def test_merged_it_is_one_graph(source: Path, empty: Path, tmp_path: Path) -> None:
    received(empty, exported(source))
    copy = tmp_path / "copy.db"
    with Store.open(copy) as store:
        store.record_context(CONTEXT, FakeDevice().target)
    received(copy, exported(source))
    merge_databases([empty, copy], tmp_path / "both.db")
    with Store.open(tmp_path / "both.db", read_only=True) as store:
        assert len(store.runs()) == 1
    assert deployed(tmp_path / "both.db").schedules == deployed(source).schedules


def test_a_graph_travels_with_all_of_its_kernels_only(source: Path) -> None:
    assert "graphs" not in exported(source, Carried.PINS)
    with Store.open(source, read_only=True) as store:
        first, *others = store.kernel_keys()
    assert others
    assert "graphs" not in exported(source, Carried.BEST, first)


def test_a_graph_that_cannot_be_built_or_read_is_left_out_and_said(source: Path, empty: Path) -> None:
    document = exported(source)
    (graph,) = document["graphs"]
    key = next(iter(graph["schedules"]))
    graph["schedules"][key] = {**graph["schedules"][key], "NUM_WARPS": 3}
    (said,) = received(empty, document).left_out
    assert said.startswith("the graph of ")
    graph["plan"]["calls"] = [{"kernel": 7}]
    (said,) = received(empty, document).left_out
    assert said.startswith("graph 1 can't be read: ")
    assert "\n" not in said


def test_elsewhere_its_schedules_are_suggestions(source: Path, tmp_path: Path) -> None:
    document = exported(source)
    with Store.open(tmp_path / "nothing.db") as store:
        done = receive_schedules(store, read_schedule_file(document, "file.json"), "bo")
        assert (done.graphs, done.evidence, store.runs()) == (0, 0, ())
        suggested = {(one.kernel_key, one.schedule) for one in store.suggestions()}
    assert set(deployed(source).schedules.items()) <= suggested
