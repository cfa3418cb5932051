"""Tabs, jump mode, pictures, themes, changed keys and badges, on the running application."""

from __future__ import annotations

from pathlib import Path

import pytest

from emmy_tui.dialogs import Reading
from emmy_tui.jump import LETTERS, Jump, letters_of, put_letter
from emmy_tui.look import Look, theme_after
from emmy_tui.source import Mode
from tests.emmy_tui.looking import application, rows, running, screen_text, showing
from tests.emmy_tui.measured import fill, over, press
from tests.emmy_tui.scripted import ScriptedSource, search_events

EVENTS = search_events()


async def test_numbers_show_tabs_and_focus_their_list(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=8))
    async with running(app, (100, 30)) as pilot:
        for key, name, panel in (
            ("2", "Variants", "variants"),
            ("3", "Failures", "clusters"),
            ("4", "Prior", "ranked"),
            ("6", "Pins", "pins"),
            ("1", "Live", "kernels"),
        ):
            await press(app, pilot, key)
            assert f"[{key} {name}]" in rows(app)[1]
            assert app.tab.focused_panel() == panel
            assert sum(tab.display for tab in app.tabs.values()) == 1
        await press(app, pilot, "2", "2", "1")
        assert "Search tree" in screen_text(app)


async def test_the_live_tab_catches_up_when_it_is_shown_again() -> None:
    source = ScriptedSource(EVENTS[:200])
    app = application(source)
    async with running(app, (120, 40)) as pilot:
        await pilot.press("3")
        source.add(*EVENTS[200:])
        app.tick()
        await pilot.press("1")
        await pilot.pause()
        assert len(app.live.search_tree.index) > 0
        assert "5/5 kernels" in rows(app)[0]
        tree = app.live.search_tree.index
        fresh = showing(EVENTS)
    async with running(fresh, (120, 40)):
        assert len(fresh.live.search_tree.index) == len(tree)


async def test_why_explains_the_node_under_the_cursor() -> None:
    app = showing(EVENTS[: len(EVENTS) // 3])
    async with running(app, (120, 40)) as pilot:
        await pilot.press("i")
        await pilot.pause()
        assert isinstance(app.screen, Reading)
        text = screen_text(app)
        for words in (
            "Its score is number",
            "score",
            "prior",
            "rank",
            "visits",
            "best below",
            "last visit",
            "prior of",
        ):
            assert words in text
        await pilot.press("escape", "tab", "g", "i")
        await pilot.pause()
        assert "root of a tree" in screen_text(app)


async def test_jumping_to_a_panel_by_its_letter() -> None:
    app = showing(EVENTS)
    async with running(app, (120, 40)) as pilot:
        await pilot.press("ctrl+o")
        assert isinstance(app.screen, Jump)
        await pilot.pause()
        text = screen_text(app)
        letters = dict(app.view.letters)
        assert set(letters) == {"kernels", "curve", "tree", "log"}
        assert all(f"[{letter}]" in text for letter in letters.values())
        assert f"[{letters['kernels']}] Kernels" in text, "the title stays readable"
        await pilot.press(letters["kernels"])
        assert app.live.focused_panel() == "kernels"
        await pilot.pause()
        assert "[a]" not in screen_text(app)
        await pilot.press("ctrl+o", "escape")
        assert app.live.focused_panel() == "kernels"
        assert app.view.letters == {}


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (["12:00 hi    ", "12:01 new b…"], ["12:00 hi [a]", "12:01 new b…"]),
        (["12:00 hit b…", "12:01       "], ["12:00 hit b…", "12:01    [a]"]),
        (["12:00 hit b…", "12:01 new b…"], ["[a]00 hit b…", "12:01 new b…"]),
        (["漢漢漢漢漢漢"], ["[a] 漢漢漢漢"]),
    ],
)
def test_a_letter_covers_blanks_where_a_line_ends_with_them(lines: list[str], shown: list[str]) -> None:
    painted = [tuple((text, "plain") for text in (line[:4], line[4:10], line[10:])) for line in lines]
    put_letter(painted, "[a]", "cursor")
    assert ["".join(text for text, _ in line) for line in painted] == shown
    assert ("[a]", "cursor") in [span for line in painted for span in line]


def test_letters_are_distinct() -> None:
    assert len(set(LETTERS)) == len(LETTERS) == 26
    assert list(letters_of(["x", "y"])) == ["x", "y"]


async def test_a_picture_is_svg_and_text(tmp_path: Path) -> None:
    app = showing(EVENTS, Look(export_folder=tmp_path))
    async with running(app, (100, 30)) as pilot:
        shown = screen_text(app)
        await pilot.press("ctrl+s")
        assert "written: " in screen_text(app)
    (svg,) = tmp_path.glob("emmy-screen-*.svg")
    (text,) = tmp_path.glob("emmy-screen-*.txt")
    assert svg.read_text().startswith("<svg")
    assert [line.rstrip() for line in shown.split("\n")] == text.read_text().rstrip("\n").split("\n")


async def test_themes_go_round() -> None:
    app = showing(EVENTS, Look(theme="nord"))
    async with running(app) as pilot:
        seen = [app.theme]
        for _ in range(3):
            await pilot.press("T")
            seen.append(app.theme)
        assert seen == ["nord", "textual-light", "ansi-dark", "nord"]
        assert theme_after(app.get_theme("ansi-dark"), "textual-light") == "textual-dark"


async def test_changed_keys_work_and_are_what_is_written() -> None:
    source = ScriptedSource(EVENTS[:200])
    app = application(source, Look(keys={"pause": ("f6",), "tab_pins": ("9",), "down": ("n",)}))
    async with running(app, (120, 40)) as pilot:
        assert "f6 Pause" in rows(app)[-1]
        await pilot.press("P")
        assert source.asked == []
        await pilot.press("f6")
        assert source.asked == ["pause"]
        await pilot.press("tab", "g", "n")
        assert app.live.search_tree.cursor == 1
        await pilot.press("6")
        assert app.view.tab == "live"
        await pilot.press("9")
        assert app.view.tab == "pins"
        await pilot.press("question_mark")
        assert "f6" in screen_text(app)


async def test_badges_stand_in_the_header() -> None:
    source = ScriptedSource(EVENTS)
    source.badges = ("NOT UPDATING", "WRITER SILENT 11m")
    app = application(source)
    async with running(app, (120, 40)):
        assert "NOT UPDATING  WRITER SILENT 11m" in rows(app)[0]


@pytest.mark.parametrize("tab", ["2", "3", "4", "5", "6"])
async def test_every_tab_is_drawn_at_any_size(tmp_path: Path, tab: str) -> None:
    app = over(fill(tmp_path / "tune.db", rows=8), Look(ascii=True))
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, tab)
        for size in ((60, 15), (79, 17), (119, 24), (200, 60), (40, 8), (80, 24)):
            await pilot.resize_terminal(*size)
            await press(app, pilot, "z", "z")
            text = screen_text(app)
            assert text.isascii(), size
            assert all(len(row) <= size[0] for row in text.split("\n")), size
            assert ("Too small" in text) == (size[0] < 60), size


async def test_a_database_that_can_not_be_written_is_only_read(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=3))
    app.source.unwritable = "the file tune.db can't be written"
    async with running(app) as pilot:
        await press(app, pilot, "6")
        assert "RO" in rows(app)[0].split()
        assert "p Pin" not in rows(app)[-1]
        await press(app, pilot, "p")
        assert len(app.screen_stack) == 1
        assert "The database is only read: the file tune.db can't be written" in screen_text(app)
        app.source.unwritable = ""
        await press(app, pilot, "p")
        assert len(app.screen_stack) == 1, "it is looked at again on the next pulse"
        app.tick()
        await press(app, pilot, "p")
        assert "Pin knobs of" in screen_text(app)


async def test_a_run_of_another_process_is_followed() -> None:
    source = ScriptedSource(search_events()[:200], mode=Mode.BROWSE, capabilities=())
    source.heard_s = 3.2
    app = application(source)
    async with running(app):
        assert "FOLLOWING  running  last row 3 s ago" in rows(app)[0]
        source.heard_s = None
        app.tick()
        assert "BROWSE  running" in rows(app)[0]
