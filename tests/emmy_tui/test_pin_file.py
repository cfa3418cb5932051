"""Pins go out in the format of `emmy export` and come back; what doesn't fit is left out and said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emmy_tui.pin_file import import_pins, pins_text
from engine.store import Store, StoreError
from tests.emmy_tui.measured import CONTEXT, fill, matmul, schedules


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db", rows=8)


def test_pins_travel(database: Path, tmp_path: Path) -> None:
    kernel, schedule = matmul(), schedules(matmul(), 3)[2]
    file = tmp_path / "pins.json"
    with Store.open(database) as store:
        with pytest.raises(StoreError, match="nothing is pinned"):
            pins_text(store)
        store.record_pin(kernel.key, schedule, CONTEXT.key, author="ana", note="steady")
        file.write_text(pins_text(store))
    (pin,) = json.loads(file.read_text())["schedules"]
    assert pin["pin"]["author"] == "ana"
    with Store.open(fill(tmp_path / "other.db", rows=1)) as store:
        received = import_pins(file, "bo")(store)
        (stored,) = store.pins()
    assert (stored.pin.schedule, stored.pin.author, stored.pin.note) == (schedule, "bo", "steady (from ana)")
    assert len(received.pins) == 1
    assert received.left_out == ()


def test_a_file_that_holds_none_is_one_sentence(database: Path, tmp_path: Path) -> None:
    file = tmp_path / "pins.json"
    file.write_text("{")
    with Store.open(database) as store, pytest.raises(StoreError, match="no complete JSON"):
        import_pins(file, "bo")(store)
