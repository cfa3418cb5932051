"""Schedules leave a database with their evidence; on the same GPU they are evidence again, on another suggestions."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.deploy import BadScheduleFile, Carried, export_schedules, read_schedule_file, receive_schedules
from engine.deploy.evidence import fastest_deployed
from engine.store import Store
from engine.vocabulary import Regime, Schedule
from tests.deploy.controlled_samples import FAST, SECOND, THIRD, tuned
from tests.deploy.samples import HERE, OLDER, THERE, fill, matmul, relu, result, schedules


def exported(path: Path, what: Carried = Carried.BOTH, kernel: str = "") -> dict[str, Any]:
    with Store.open(path, read_only=True) as store:
        found = export_schedules(store, kernel, what, "emmy export")
    assert found.left_out == ()
    document: dict[str, Any] = json.loads(found.text)
    assert len(document["schedules"]) == found.schedules
    return document


def received(path: Path, document: dict[str, Any], who: str = "bo") -> tuple[int, int, int, int]:
    with Store.open(path) as store:
        done = receive_schedules(store, read_schedule_file(document, "file.json"), who)
    return len(done.pins), done.evidence, done.suggestions, len(done.left_out)


def test_in_the_same_context_times_are_evidence_and_pins_are_pins(tmp_path: Path) -> None:
    source = fill(tmp_path / "a.db")
    pinned = schedules(matmul(), 4)[3]
    with Store.open(source) as store:
        store.record_pin(matmul().key, pinned, HERE.key, author="ana", note="steady")
    document = exported(source)
    assert document["reproduce"] == ["emmy tune --code x"]
    with Store.open(tmp_path / "b.db") as store:
        store.record_context(HERE)
    assert received(tmp_path / "b.db", document) == (1, 5, 0, 0)
    assert received(tmp_path / "b.db", document) == (0, 0, 0, 0)
    with Store.open(tmp_path / "b.db", read_only=True) as store:
        (stored,) = store.pins()
        assert (stored.pin.schedule, stored.pin.author, stored.pin.note) == (pinned, "bo", "steady (from ana)")
        best = store.best(matmul().key, HERE.key, Regime.DEPLOY)
        assert best is not None
        assert (best.us, best.build.registers, best.error) == (9.5, 96, 1e-6)
        assert store.best(matmul().key, HERE.key, Regime.RANKING).us == 10.0
        assert [kernel.label for kernel in store.kernels()] == ["matmul", "relu"]
        (variants, _) = store.variants()
        assert variants.ok == 2


@pytest.mark.parametrize(
    ("there", "reason"),
    [(THERE, "on NVIDIA B200, not NVIDIA H200"), (OLDER, "with triton 3.5.0, not 3.6.0")],
)
def test_from_elsewhere_they_are_suggestions_with_the_reason(tmp_path: Path, there, reason: str) -> None:
    source = fill(tmp_path / "a.db", there)
    pinned = schedules(matmul(), 4)[3]
    with Store.open(source) as store:
        store.record_pin(matmul().key, pinned, there.key, author="ana")
    path = fill(tmp_path / "b.db")
    assert received(path, exported(source)) == (0, 0, 3, 0)
    assert received(path, exported(source)) == (0, 0, 0, 0)
    with Store.open(path, read_only=True) as store:
        assert store.pins() == ()
        assert [context.gpu for context in store.contexts()] == ["NVIDIA H200"]
        found = store.suggestions(matmul().key)
    assert [one.reason for one in found] == [f"measured {reason}", f"pinned by ana {reason}"]
    assert (found[0].us, found[0].regime, found[0].origin, found[1].schedule) == (9.5, "deploy", there, pinned)


@pytest.mark.parametrize(("what", "count"), [(Carried.PINS, 1), (Carried.BEST, 2), (Carried.BOTH, 3)])
def test_what_leaves(tmp_path: Path, what: Carried, count: int) -> None:
    source = fill(tmp_path / "a.db")
    with Store.open(source) as store:
        store.record_pin(relu().key, schedules(relu(), 4)[2], HERE.key, author="ana")
    assert len(exported(source, what)["schedules"]) == count
    assert len(exported(source, what, "RELU")["kernels"]) == 1


def used(path: Path) -> tuple[Schedule, float | None] | None:
    with Store.open(path, read_only=True) as store:
        found = fastest_deployed(matmul(), store, HERE.key)
    return (found.schedule, found.us) if found is not None else None


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("what", [Carried.BEST, Carried.BOTH])
def test_the_finalist_that_was_chosen_in_turns_is_used_where_the_file_is_read(
    tmp_path: Path, what: Carried, pinned: bool
) -> None:
    with Store.open(tmp_path / "a.db") as store:
        tuned(store, HERE, [(FAST, 9.0), (SECOND, 9.1), (THIRD, 9.2)], SECOND)
        if pinned:
            store.record_pin(matmul().key, FAST, HERE.key, author="ana")
    with Store.open(tmp_path / "b.db") as store:
        store.record_context(HERE)
    assert used(tmp_path / "a.db") == (SECOND, 9.1)
    received(tmp_path / "b.db", exported(tmp_path / "a.db", what))
    assert used(tmp_path / "b.db") == (SECOND, 9.1)


def test_one_that_is_faster_than_all_that_were_timed_in_turns_is_used_in_both(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        tuned(store, HERE, [(FAST, 9.0), (SECOND, 9.1)], SECOND)
        store.record_measurement(result(matmul(), THIRD, 8.0, HERE, Regime.DEPLOY), run=store.runs()[0].id)
    with Store.open(tmp_path / "b.db") as store:
        store.record_context(HERE)
    received(tmp_path / "b.db", exported(tmp_path / "a.db"))
    assert used(tmp_path / "a.db") == used(tmp_path / "b.db") == (THIRD, 8.0)


def test_an_illegal_schedule_or_an_edited_body_is_left_out_and_said(tmp_path: Path) -> None:
    document = exported(fill(tmp_path / "a.db"))
    illegal = copy.deepcopy(document["schedules"][0])
    name = next(iter(illegal["schedule"]))
    illegal["schedule"] = {**illegal["schedule"], name: "nonsense"}
    document["schedules"].append(illegal)
    document["kernels"][relu().key]["body"]["body"]["ops"][0]["shape"] = [-4]
    path = fill(tmp_path / "b.db")
    before = path.read_bytes()
    with Store.open(path) as store:
        done = receive_schedules(store, read_schedule_file(document, "file.json"), "bo")
    assert len(done.left_out) == 2
    assert any("can't be read" in sentence for sentence in done.left_out)
    assert any(name in sentence for sentence in done.left_out)
    assert all("\n" not in sentence for sentence in done.left_out)
    with Store.open(path, read_only=True) as store:
        assert len(store.kernels()) == 2
    assert len(before) > 0


def every_place(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to everything inside a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in ((*path, key), *every_place(item, (*path, key)))]


HOSTILE = st.sampled_from(
    (None, True, -1, 0, 10**30, 1.5, float("nan"), float("inf"), "", "x'); DROP TABLE kernel; --", "\x00\n\ud800", [])
) | st.recursive(st.none() | st.integers() | st.text(max_size=4), lambda i: st.lists(i) | st.dictionaries(st.text(), i))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_edited_file_is_read_or_refused_in_words(tmp_path_factory, data: st.DataObject) -> None:
    folder = tmp_path_factory.getbasetemp() / "edited"
    if not folder.exists():
        folder.mkdir()
        fill(folder / "a.db")
        fill(folder / "b.db", THERE)
    document = exported(folder / "a.db")
    for _ in range(data.draw(st.integers(1, 2))):
        *where, last = data.draw(st.sampled_from(every_place(document)))
        inner = document
        for key in where:
            inner = inner[key]
        if data.draw(st.booleans()):
            inner[last] = data.draw(HOSTILE)
        else:
            del inner[last]
    said = ""
    try:
        content = read_schedule_file(document, "file.json")
    except BadScheduleFile as error:
        said = str(error)
    if said:
        assert said.startswith("file.json")
        assert "\n" not in said
        return
    with Store.open(folder / "b.db") as store:
        receive_schedules(store, content, "bo")
        kept = store.suggestions()
        assert all(isinstance(one.schedule, Schedule) for one in kept)
        assert len(store.kernels()) >= 2
