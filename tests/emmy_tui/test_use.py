"""What a person meets in use: sentences that cover nothing, dead keys that answer, orders of kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from emmy_tui.database_source import count_programs
from emmy_tui.notice import start_lines
from emmy_tui.source import Mode
from emmy_tui.text import line_width, plain
from emmy_tui.variant_detail import NO_SOURCE, context_text, rendered
from emmy_tui.view import View
from emmy_tui.widgets import footer
from emmy_tui.widgets.totals import program_name
from engine.events import Event, KernelFound, KernelStarted
from engine.ir.foreign import FOREIGN, NO_BODY, Identity
from engine.ir.kernel import Kernel
from engine.store import Store
from engine.vocabulary import Schedule, Target
from tests.emmy_tui.looking import application, rows, running, screen_text, showing
from tests.emmy_tui.measured import CONTEXT, fill, over, press
from tests.emmy_tui.scripted import START, ScriptedSource, search_events
from tests.emmy_tui.two_runs import record_runs

EVENTS = search_events()


async def test_a_sentence_has_lines_of_its_own_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    app = showing(EVENTS)
    async with running(app) as pilot:
        before = rows(app)
        app.outlet.say("a sentence " * 12)
        await pilot.pause()
        told = rows(app)
        assert told[-3].startswith(" a sentence")
        assert told[-1] == before[-1]
        assert app.live.size.height == 24 - 3 - 2
        monkeypatch.setattr(footer, "SHOWN_S", -1.0)
        app.outlet.say("over")
        app.tick()
        await pilot.pause()
        assert rows(app) == before


async def test_a_key_that_does_nothing_now_says_why(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=8), mode=Mode.BROWSE)
    async with running(app) as pilot:
        await press(app, pilot, "i")
        assert "There is no search tree in this database: its results were imported" in app.footer.said
        assert "There is no search tree in this database" in screen_text(app)
        await press(app, pilot, "R")
        assert "a run is steered where it was started" in app.footer.said
        await press(app, pilot, "w")
        assert app.footer.said == "It belongs to another tab: press 5 first."
        app.footer.said = ""
        await press(app, pilot, "escape", "j", "z")
        assert app.footer.said == ""


async def test_kernels_are_sorted_by_cost() -> None:
    app = showing(EVENTS)
    async with running(app, (160, 45)) as pilot:
        counted = {row.kernel: count for row, count in app.view.snapshot.counted_kernels()}
        await pilot.press("s")
        shown = app.live.kernel_panel.ordered()
        for part in (True, False):
            rows_of = [row for row in shown if (row.kernel in counted) == part]
            costs = [(row.chosen_us or 0.0) * (counted.get(row.kernel) or row.count or 1) for row in rows_of]
            assert costs == sorted(costs, reverse=True)
        assert [row.kernel in counted for row in shown] == sorted(
            (row.kernel in counted for row in shown), reverse=True
        )
        assert "by cost ▼" in screen_text(app)
        app.focus_panel("kernels")
        await pilot.press("g", "right_square_bracket")
        assert app.view.chosen == shown[1].kernel
        await pilot.press("S")
        assert app.live.kernel_panel.ordered() == sorted(shown[::-1], key=lambda row: row.kernel not in counted)
        await pilot.press("S", "s")
        times = [row.chosen_us or 0.0 for row in app.live.kernel_panel.ordered()]
        assert times == sorted(times, reverse=True)
        await pilot.press("s")
        assert app.live.kernel_panel.ordered() == list(app.view.snapshot.kernels.values())


async def test_counts_are_seen_at_80_columns() -> None:
    app = showing(EVENTS)
    async with running(app) as pilot:
        await pilot.pause()
        snapshot = app.view.snapshot
        assert f"measured {snapshot.measured}" in rows(app)[1]
        assert "5Cmp" in rows(app)[1]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_start_screen_is_never_cut(width: int) -> None:
    lines = start_lines(width)
    text = " ".join(" ".join(plain(line).split()) for line in lines)
    assert "the GPU in front of you." in text
    assert "or watch the run that writes it" in text
    assert all(line_width(line) <= width for line in lines[:-2])


async def test_programs_are_counted(tmp_path: Path) -> None:
    path = record_runs(tmp_path / "tune.db")
    with Store.open(path, read_only=True) as store:
        assert count_programs(store) == 1
    app = over(path, mode=Mode.BROWSE)
    async with running(app) as pilot:
        await press(app, pilot, "1")
        assert app.view.programs == 1
        assert program_name(app.view) == ""
        app.view.programs = 3
        assert program_name(app.view) == "program 1 of 3"
    assert program_name(View(programs=3)) == ""


def test_an_imported_kernel_says_what_it_is() -> None:
    kernel = Kernel(FOREIGN, NO_BODY, "gemm", Identity.of("gemm", "512", ("MWG",)))
    assert rendered(kernel, Schedule.of({"MWG": 64}), Target()) == ("", NO_SOURCE)
    unknown = replace(CONTEXT, driver="", torch="", triton="")
    assert context_text(unknown) == "NVIDIA H200"
    assert context_text(CONTEXT) == "NVIDIA H200, driver 580.1, torch 2.13.0, Triton 3.6.0"


async def test_the_path_of_a_newcomer(tmp_path: Path) -> None:
    """Best variant of the slowest kernel, largest failure cluster, the second best pinned, the pins exported: each
    within five keys of its tab."""
    app = over(fill(tmp_path / "tune.db"))
    async with running(app) as pilot:
        await press(app, pilot, "s", "enter", "2")
        assert app.variants.list.cursor == 0
        assert "1   " in rows(app)[4]
        await press(app, pilot, "j", "p", "enter")
        second = app.variants.list.current_row()
        assert second is not None
        assert second.pinned
        await press(app, pilot, "3")
        assert "out of resource" in rows(app)[4]
        await press(app, pilot, "6", "e")
        assert list((tmp_path / "out").glob("emmy-pins-*.json"))


async def test_why_the_best_was_preferred_is_two_keys_away() -> None:
    app = showing(EVENTS)
    async with running(app, (160, 45)) as pilot:
        await pilot.press("s", "g", "i")
        await pilot.pause()
        text = " ".join(screen_text(app).split())
        assert "the choices that led to what deploys" in text
        assert "ROWS=2 0.87 2 of 5" in text
        await pilot.press("escape", "tab", "j", "j", "i")
        await pilot.pause()
        text = " ".join(screen_text(app).split())
        assert "the best of the tree" in text
        assert "The prior put it at number 2 of 5" in text


async def test_sorting_goes_to_the_kernels() -> None:
    app = showing([*search_events(), *many_kernels(19)])
    async with running(app, (80, 24)) as pilot:
        for key in ("s", "s", "S", "s"):
            await pilot.press(key)
            await pilot.pause()
            assert app.live.focused_panel() == "kernels"
            assert app.live.kernel_panel.marked_line() is not None


async def test_the_highlighted_kernel_is_the_one_that_every_tab_shows() -> None:
    app = showing([*search_events(), *many_kernels(3)])
    async with running(app, (120, 40)) as pilot:
        panel = app.live.kernel_panel
        app.focus_panel("kernels")
        await pilot.press("s", "s", "G")
        last = panel.ordered()[-1]
        assert panel.current() is app.view.kernel is last
        await pilot.press("k")
        assert panel.current() is app.view.kernel is panel.ordered()[-2]
        await pilot.press("2")
        assert app.variants.kernel_here() is panel.ordered()[-2]
        await pilot.press("1", "g")
        assert app.view.chosen == panel.ordered()[0].kernel


async def test_the_shown_kernel_is_in_sight_and_the_cursor_is_on_it() -> None:
    source = ScriptedSource([*search_events(), *many_kernels(19)])
    app = application(source)
    async with running(app, (80, 24)) as pilot:
        panel = app.live.kernel_panel
        assert app.focused is panel
        app.choose_kernel("extra18")
        await pilot.pause()
        assert panel.current() is app.view.kernel
        assert panel.marked_line() is not None
        await pilot.press("g")
        app.tick()
        assert panel.cursor == 0


@pytest.mark.parametrize("order", ["s", "sS"])
async def test_by_cost_the_chosen_kernels_come_before_the_others_of_every_program(order: str) -> None:
    app = showing([*search_events(), *many_kernels(3)])
    async with running(app, (120, 40)) as pilot:
        row = app.view.snapshot.kernels["extra1"]
        row.best_us, row.count = 9e5, 1
        await pilot.press(*order)
        chosen = {kernel.kernel for kernel, _ in app.view.snapshot.counted_kernels()}
        ordered = app.live.kernel_panel.ordered()
        assert {kernel.kernel for kernel in ordered[: len(chosen)]} == chosen
        assert ordered[-1 if order == "sS" else len(chosen)] is row


@pytest.mark.parametrize("order", ["s", "ss", "sss", "S"])
async def test_a_sorted_list_shows_its_top_with_the_cursor_on_it(order: str) -> None:
    app = showing([*search_events(), *many_kernels(60)])
    async with running(app) as pilot:
        app.focus_panel("kernels")
        await pilot.press("G", *order)
        panel = app.live.kernel_panel
        assert (panel.top, panel.cursor) == (0, 0)
        assert app.view.kernel is panel.ordered()[0]


@pytest.mark.parametrize("order", ["s", "ss", "sss", "S"])
async def test_sorting_a_run_that_is_on_goes_on_following_it(order: str) -> None:
    """Only a person's own choice of a kernel ends that."""
    began = next(place for place, event in enumerate(EVENTS) if isinstance(event, KernelStarted))
    first = EVENTS[began]
    assert isinstance(first, KernelStarted)
    source = ScriptedSource([*EVENTS[: began + 1], *many_kernels(30)])
    app = application(source)
    async with running(app) as pilot:
        panel = app.live.kernel_panel
        await pilot.press(*order)
        await pilot.pause()
        assert (app.view.chosen, panel.current()) == ("", app.view.snapshot.kernels[first.kernel])
        assert panel.marked_line() is not None
        source.add(KernelStarted(at=START + 1, kernel="extra3", patience=50))
        app.tick()
        await pilot.pause()
        assert panel.current() is app.view.kernel is app.view.snapshot.kernels["extra3"]
        assert panel.marked_line() is not None
        await pilot.press("g", "s")
        await pilot.pause()
        assert (panel.cursor, app.view.chosen) == (0, panel.ordered()[0].kernel)


def many_kernels(count: int) -> list[Event]:
    """Kernels of another program, which no sum counts."""
    return [
        KernelFound(
            at=START,
            kernel=f"extra{n}",
            label=f"extra {n}",
            family="pointwise",
            shape="8",
            count=1,
            flops=1,
            bytes_moved=1,
        )
        for n in range(count)
    ]
