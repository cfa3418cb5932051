"""How far each kernel is from the least time that the GPU allows, and what sets that."""

from __future__ import annotations

from pathlib import Path

import pytest

from emmy_tui.text import ASCII, UNICODE, line_width, plain
from emmy_tui.widgets.kernel_list import Columns, floor_text, header_line, kernel_line
from engine.ir.roofline import Ceilings
from engine.snapshot import Snapshot, apply
from engine.store import Store
from tests.emmy_tui.looking import running, screen_text, showing
from tests.emmy_tui.measured import CONTEXT, fill, over, press
from tests.emmy_tui.scripted import floors, search_events

EVENTS = search_events()


def snapshot() -> Snapshot:
    found = Snapshot()
    for event in [*EVENTS, *floors()]:
        apply(found, event)
    return found


@pytest.mark.parametrize("width", [58, 66, 74, 78, 90, 120])
def test_the_column_fits_in(width: int) -> None:
    columns = Columns.of(width, 11, floors=True)
    header = header_line(columns, UNICODE)
    assert line_width(header) <= width
    assert "×floor" in plain(header)
    for row in snapshot().kernels.values():
        line = kernel_line(row, row.count, 1000.0, False, columns, UNICODE)
        assert line_width(line) == line_width(header)
        assert floor_text(row) in plain(line)


def test_a_time_over_its_floor_names_what_binds() -> None:
    rows = snapshot().kernels
    assert floor_text(rows["5f1c"]) == f"{(rows['5f1c'].chosen_us or 0) / (176 / 1.7):.2f}c"
    assert floor_text(rows["77d2"]).endswith("m")
    assert floor_text(rows["e911"]) == "-", "it has no time"


async def test_list_detail_and_health_tell_of_it() -> None:
    app = showing([*EVENTS, *floors()])
    async with running(app, (160, 45)) as pilot:
        assert "×floor" in screen_text(app)
        await pilot.press("G")
        text = screen_text(app)
        assert "floor       103.5 us by compute" in text or "us by memory" in text
        await pilot.press("H")
        await pilot.pause()
        assert "at its best  copy 4021 GB/s   matmul bf16 790   fp32 52 TFLOP/s" in screen_text(app)


async def test_without_ceilings_there_is_no_column() -> None:
    app = showing(EVENTS)
    async with running(app, (160, 45)):
        assert "floor" not in screen_text(app)


async def test_a_variant_is_seen_beside_the_floor_of_its_kernel(tmp_path: Path) -> None:
    path = fill(tmp_path / "tune.db")
    with Store.open(path) as store:
        store.record_ceilings(CONTEXT.key, Ceilings(4000.0, (("bf16", 800.0), ("fp32", 50.0))))
    app = over(path)
    async with running(app, (120, 40)) as pilot:
        await press(app, pilot, "2", "enter")
        text = screen_text(app)
        assert "us by compute, this takes" in text
        assert "predicted" in text


def test_ascii_heads_are_ascii() -> None:
    assert plain(header_line(Columns.of(120, floors=True), ASCII)).isascii()
