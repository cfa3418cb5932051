"""Pins go out as JSON and come back; a file that holds none is one sentence, a pin that doesn't fit is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emmy_tui.pin_file import BadPinFile, import_pins, pins_text, read_pins
from engine.store import Store
from tests.emmy_tui.measured import CONTEXT, OTHER, fill, matmul, schedules


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db", rows=8)


def exported(database: Path, folder: Path) -> Path:
    """A file with the pins of the database."""
    with Store.open(database) as store:
        text = pins_text(store.pin_standings(), store.contexts())
    file = folder / "pins.json"
    file.write_text(text)
    return file


def test_pins_travel(database: Path, tmp_path: Path) -> None:
    kernel, schedule = matmul(), schedules(matmul(), 3)[2]
    with Store.open(database) as store:
        store.record_pin(kernel.key, schedule, CONTEXT.key, author="ana", note="steady")
    file = exported(database, tmp_path)
    assert json.loads(file.read_text())["pins"][0]["versions"]["gpu"] == "NVIDIA H200"
    with Store.open(fill(tmp_path / "other.db", rows=1)) as store:
        imported = import_pins(file, "bo")(store)
        (stored,) = store.pins()
    assert (stored.pin.schedule, stored.pin.author, stored.pin.note) == (schedule, "bo", "steady (from ana)")
    assert len(imported.changes) == 1
    assert imported.left_out == ()


def test_what_does_not_fit_is_left_out_and_said(database: Path, tmp_path: Path) -> None:
    kernel, schedule = matmul(), schedules(matmul(), 1)[0]
    good = {"kernel": kernel.key, "schedule": schedule.as_dict(), "context": CONTEXT.key, "gpu": "NVIDIA H200"}
    pins = [
        good,
        {**good, "kernel": "unknown"},
        {**good, "context": "elsewhere", "gpu": "B200"},
        {**good, "schedule": {**schedule.as_dict(), "NUM_WARPS": 3}},
        {**good, "context": OTHER.key},
    ]
    file = tmp_path / "pins.json"
    file.write_text(json.dumps({"format": "emmy pins", "version": 1, "pins": pins}))
    with Store.open(database) as store:
        imported = import_pins(file, "bo")(store)
        assert len(store.pins()) == 2
    assert [sentence.split(":")[0] for sentence in imported.left_out[:2]] == [
        "kernel unknown isn't in this database",
        "matmul was pinned on another GPU or toolchain (B200)",
    ]
    assert "NUM_WARPS" in imported.left_out[2]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "holds no pins"),
        ('{"format": "emmy pins", "pins": 3}', "holds no pins"),
        ('{"format": "emmy pins", "version": 9, "pins": []}', "another Emmy (version 9"),
        ('{"format": "emmy pins", "version": 1, "pins": [1]}', "pin 1 is no object"),
        ('{"format": "emmy pins", "version": 1, "pins": [{"kernel": 1}]}', "kernel of pin 1 is no text"),
        (
            '{"format": "emmy pins", "version": 1, "pins": [{"kernel": "k", "context": "c", "schedule": [1]}]}',
            "the schedule of pin 1",
        ),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "pins.json"
    file.write_text(text)
    with pytest.raises(BadPinFile) as refused:
        read_pins(file)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(BadPinFile, match="can't be read"):
        read_pins(tmp_path / "missing.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("kernel", "context", "schedule", "gpu", "note", "author", "x")), inner, max_size=5
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON)
def test_any_json_is_read_or_refused(tmp_path: Path, value: object) -> None:
    file = tmp_path / "pins.json"
    file.write_text(json.dumps({"format": "emmy pins", "version": 1, "pins": [value]}))
    try:
        read = len(read_pins(file))
    except BadPinFile as error:
        read = 1 if str(file) in str(error) else 0
    assert read == 1
