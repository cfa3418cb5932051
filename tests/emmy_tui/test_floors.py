"""How far each kernel is from the least time that the GPU allows, and what sets that."""

from __future__ import annotations

from pathlib import Path

import pytest

from emmy_tui import format as fmt
from emmy_tui.text import ASCII, UNICODE, line_width, plain
from emmy_tui.view import View
from emmy_tui.widgets.kernel_list import Columns, KernelList, floor_text, header_line, kernel_line
from emmy_tui.widgets.selected import floor_sentence
from emmy_tui.widgets.totals import total_lines
from engine.ir.roofline import Ceilings
from engine.snapshot import KernelRow, Snapshot, apply
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


def test_the_program_has_a_floor_once_each_of_its_kernels_has_one() -> None:
    found = snapshot()
    counted = found.counted_kernels()
    assert counted
    floor_us = sum(count * (row.floor_us or 0) for row, count in counted)
    by_compute = sum(count * (row.floor_us or 0) for row, count in counted if row.bound == "compute")
    share, bound = max((by_compute / floor_us, "compute"), (1 - by_compute / floor_us, "memory"))
    assembled = found.assembled_grouping()
    us = assembled.whole_us if assembled is not None else found.counted_us()
    text = plain(total_lines(View(snapshot=found), 160)[0])
    assert f"×floor {(us or 0) / floor_us:.2f} ({fmt.us(floor_us)} us, {fmt.ratio(share)} by {bound})" in text
    counted[0][0].floor_us = None
    assert "floor" not in plain(total_lines(View(snapshot=found), 160)[0])


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


def test_the_detail_names_the_regime_of_the_time_beside_the_floor() -> None:
    kernel = KernelRow("k", "sum", "reduction", "8x8", 1, 1, 1, best_us=178.3, floor_us=178.5, bound="memory")
    assert floor_sentence(kernel, 182.2, "deploy") == "178.5 us by memory; 182.2 us by deploy time is 1.02 times that"
    below = floor_sentence(kernel, 171.4, "ranking")
    assert "171.4 us by ranking time is 0.96 times that, a copy's rate where no reading was measured" in below
    assert floor_sentence(kernel, None, "ranking") == "178.5 us by memory"


def test_a_column_goes_before_names_are_cut_to_look_alike() -> None:
    found = Snapshot()
    for number, label in enumerate(("softmax_of_scores", "softmax_of_gates")):
        found.kernels[str(number)] = KernelRow(
            str(number), label, "reduction", "4096x4096 bf16", number, 1, 1, best_us=9.0, floor_us=8.0, bound="memory"
        )
    panel = KernelList(View(snapshot=found))
    narrow, wide = panel._columns(58), panel._columns(120)
    assert (narrow.floor, wide.floor > 0, wide.change > 0) == (0, True, True)
    names = {plain(kernel_line(row, 1, None, False, narrow, UNICODE)).split()[0] for row in found.kernels.values()}
    assert len(names) == 2
    assert line_width(header_line(narrow, UNICODE)) <= 58
