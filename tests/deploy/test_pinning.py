"""A pin decides where it was made; elsewhere it is a suggestion, and what was built is compared with it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.codegen import render
from engine.deploy import (
    Carried,
    SilentFallbackError,
    check_source_built,
    completed_schedule,
    difference_text,
    export_schedules,
    pin_context,
    read_schedule_file,
    receive_schedules,
    schedules_to_try,
    suggestions_for,
    suggestions_now,
    unpinnable_because,
)
from engine.knobs import BadKnobs
from engine.store import Store, StoreError, Suggestion
from engine.vocabulary import Context, Schedule, Target
from tests.deploy.controlled_samples import tuned
from tests.deploy.samples import HERE, OLDER, THERE, fill, matmul, relu, schedules


def test_a_legal_schedule_can_be_pinned_and_another_cant(tmp_path: Path) -> None:
    kernel = matmul()
    good = schedules(kernel, 1)[0]
    with Store.open(fill(tmp_path / "a.db")) as store:
        assert pin_context(store, kernel.key) == HERE.key
        assert unpinnable_because(kernel, good, store, HERE.key) == ""
        illegal = Schedule.of({**good.as_dict(), "BLOCK_N": 3})
        assert "BLOCK_N=3" in unpinnable_because(kernel, illegal, store, HERE.key)
    with Store.open(tmp_path / "empty.db") as store, pytest.raises(StoreError, match="no run"):
        pin_context(store, kernel.key)


def test_knobs_left_away_are_those_of_the_best_one_optional_ones_too() -> None:
    kernel = matmul()
    best = Schedule.of({**schedules(kernel, 1)[0].as_dict(), "ACF": "a" * 64})
    typed = Schedule.of({"NUM_WARPS": 8, "ACF": ""})
    assert completed_schedule(kernel, Schedule.of({"NUM_WARPS": 8}), best).as_dict() == {
        **best.as_dict(),
        "NUM_WARPS": 8,
    }
    assert completed_schedule(kernel, typed, best).as_dict() == {**best.as_dict(), "NUM_WARPS": 8, "ACF": ""}
    assert completed_schedule(kernel, best, None) == best


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"FOO": 1}, "FOO is no knob of a contraction kernel; its knobs are BLOCK_M, "),
        ({"BM": 64}, "BM is no knob of a contraction kernel; near it are BLOCK_M"),
        ({"NUM_WARP": 8}, "NUM_WARP is no knob of a contraction kernel; near it are NUM_WARPS"),
        ({"ROWS": 8}, "ROWS is no knob of a contraction kernel; "),
    ],
)
def test_a_name_that_is_no_knob_is_named_with_what_comes_near(typed: dict[str, int], sentence: str) -> None:
    kernel = matmul()
    for best in (schedules(kernel, 1)[0], None):
        with pytest.raises(BadKnobs) as refused:
            completed_schedule(kernel, Schedule.of(dict(typed)), best)
        assert str(refused.value).startswith(sentence)


def test_without_a_best_one_every_knob_is_to_be_given() -> None:
    typed = Schedule.of({name: value for name, value in schedules(relu(), 1)[0].knobs if name != "NUM_WARPS"})
    with pytest.raises(BadKnobs, match="every knob is to be given: NUM_WARPS is missing"):
        completed_schedule(relu(), typed, None)


def test_pins_of_other_contexts_and_shapes_are_suggestions(tmp_path: Path) -> None:
    kernel, other = matmul(), matmul(512)
    mine, older, imported, shape = schedules(kernel, 4)
    path = fill(tmp_path / "a.db")
    with Store.open(path) as store:
        for context in (OLDER, THERE):
            store.record_context(context, Target())
        store.record_kernel(other)
        store.record_pin(kernel.key, mine, HERE.key, author="ana")
        store.record_pin(kernel.key, older, OLDER.key, author="bo")
        store.record_pin(other.key, shape, HERE.key, author="cy")
        store.record_pin(relu().key, schedules(relu(), 1)[0], HERE.key, author="cy")
        illegal = Schedule.of({**older.as_dict(), "BLOCK_N": 3})
        store.suggest([Suggestion(kernel.key, one, THERE, "measured there", 3.0) for one in (imported, illegal)])
        found = suggestions_for(kernel, store, HERE.key)
        tried = schedules_to_try(kernel, store, HERE.key)
    assert [one.reason for one in found] == [
        "pinned by bo with triton 3.5.0, not 3.6.0",
        "measured there",
        "pinned by cy for 512x512x512 float32, not 256x256x256 float32",
    ]
    assert tried == (mine, older, imported, shape)


def test_a_suggestion_whose_context_is_here_becomes_what_it_was_there(tmp_path: Path) -> None:
    """From elsewhere; from here, and to be tried; then timed or pinned here, and no suggestion any more."""
    kernel = matmul()
    timed, pinned, left = schedules(kernel, 3)
    source, path = tmp_path / "a.db", tmp_path / "b.db"
    tuned_in(source, THERE, timed)
    with Store.open(source) as store:
        for schedule in (pinned, left):
            store.record_pin(kernel.key, schedule, THERE.key, author="ana")
            document = json.loads(export_schedules(store, "", Carried.BOTH, "emmy export").text)
            fill(path)
            with Store.open(path) as other:
                receive_schedules(other, read_schedule_file(document, "file.json"), "bo")
    assert reasons(path) == {
        timed: "measured on NVIDIA B200, not NVIDIA H200",
        pinned: "pinned by ana on NVIDIA B200, not NVIDIA H200",
        left: "pinned by ana on NVIDIA B200, not NVIDIA H200",
    }
    tuned_in(path, replace(THERE, torch="2.12.0"), schedules(kernel, 4)[3])
    assert reasons(path)[left] == "pinned by ana with torch 2.13.0, not 2.12.0"
    tuned_in(path, THERE, schedules(kernel, 4)[3])
    here = "on this GPU with these versions, but not in this database"
    assert reasons(path) == {timed: f"measured {here}", pinned: f"pinned by ana {here}", left: f"pinned by ana {here}"}
    with Store.open(path) as store:
        before = schedules_to_try(kernel, store, THERE.key)
        store.record_pin(kernel.key, pinned, THERE.key, author="bo")
    tuned_in(path, THERE, timed)
    assert reasons(path) == {left: f"pinned by ana {here}"}
    with Store.open(path) as store:
        found = suggestions_for(kernel, store, THERE.key)
        assert [one.schedule for one in found if one.origin == THERE] == [left]
        assert set(schedules_to_try(kernel, store, THERE.key)) == set(before)


def reasons(path: Path) -> dict[Schedule, str]:
    with Store.open(path, read_only=True) as store:
        return {one.schedule: one.reason for one in suggestions_now(store)}


def tuned_in(path: Path, context: Context, schedule: Schedule) -> None:
    with Store.open(path) as store:
        tuned(store, context, [(schedule, 5.0)], None)


def test_the_difference_of_two_contexts() -> None:
    assert difference_text(THERE, HERE) == "on NVIDIA B200, not NVIDIA H200"
    assert difference_text(OLDER, HERE) == "with triton 3.5.0, not 3.6.0"
    assert difference_text(replace(HERE, cold_l2=True), HERE) == "with a cold L2"
    assert difference_text(HERE, HERE) == ""


def test_a_silent_fallback_is_an_error() -> None:
    kernel = matmul()
    pin, other = schedules(kernel, 2)
    for pdl in (False, True):
        check_source_built(kernel, pin, render(kernel, pin, Target(), pdl=pdl), Target())
        with pytest.raises(SilentFallbackError, match="matmul 256x256x256 float32 is pinned to"):
            check_source_built(kernel, pin, render(kernel, other, Target(), pdl=pdl), Target())
