"""Pictures of the screen, reviewed by eye and kept: sizes and states, without colour and in ASCII, tiny ones, names
that look like markup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.pilot import Pilot

from emmy_tui.app import EmmyApp
from emmy_tui.look import Look
from emmy_tui.source import Mode
from engine.events import Acted, Event, KernelFound, Logged, Measured
from engine.store import Store
from engine.vocabulary import Schedule
from tests.emmy_tui.assembled import assembled
from tests.emmy_tui.looking import application, rows, running, screen_text, showing, strips
from tests.emmy_tui.measured import CONTEXT, OTHER, fill, matmul, only_eight_warps_fail, over, press, schedules, suggest
from tests.emmy_tui.reported import StillPrior, report
from tests.emmy_tui.scripted import COMPILING, START, ScriptedSource, failed_events, floors, search_events
from tests.emmy_tui.two_runs import record_runs

SIZES = ((80, 24), (100, 30), (160, 45))
EVENTS = search_events()


def empty() -> EmmyApp:
    return showing(capabilities=())


def live() -> EmmyApp:
    return showing(EVENTS[: len(EVENTS) * 3 // 5])


def failed_only() -> EmmyApp:
    return showing(failed_events(), capabilities=("start",))


def browse() -> EmmyApp:
    return showing(EVENTS, Look(read_only=True), mode=Mode.BROWSE, capabilities=())


STATES: tuple[Callable[[], EmmyApp], ...] = (empty, live, failed_only, browse)

SnapCompare = Callable[..., bool]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_screen(snap_compare: SnapCompare, state: Callable[[], EmmyApp], size: tuple[int, int]) -> None:
    assert snap_compare(state(), terminal_size=size)


def _pinned(path: Path) -> Path:
    with Store.open(path, clock=lambda: START) as store:
        for place, context in ((0, CONTEXT), (9, OTHER)):
            key = matmul().key
            store.record_pin(key, schedules(matmul())[place], context.key, author="ana", note="steady")
    return path


def _empty(path: Path) -> Path:
    with Store.open(path) as store:
        store._connection.db.conn.execute("DELETE FROM measurement")
        store._connection.db.conn.execute("DELETE FROM node")
    return path


@pytest.fixture(autouse=True)
def one_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is predicted doesn't change with the prior that the product ships."""
    monkeypatch.setattr("emmy_tui.prior_reading.report_steps", lambda store: iter([report()]))
    for asking in ("predicting", "deploying"):
        monkeypatch.setattr(f"emmy_tui.{asking}.steering", lambda path: StillPrior())


TABS = {
    "variants": ("2",),
    "failures": ("3",),
    "prior": ("4",),
    "pins": ("6",),
    "compare": ("5",),
}


@pytest.fixture
def by_ana(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emmy_tui.pinning.author", lambda: "ana")


@pytest.mark.usefixtures("by_ana")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("tab", TABS)
def test_tab(snap_compare: SnapCompare, tmp_path: Path, tab: str, size: tuple[int, int]) -> None:
    _compare(snap_compare, over(_pinned(fill(tmp_path / "tune.db"))), TABS[tab], size)


@pytest.mark.parametrize("tab", TABS)
def test_tab_empty(snap_compare: SnapCompare, tmp_path: Path, tab: str) -> None:
    _compare(snap_compare, over(_empty(fill(tmp_path / "tune.db", rows=2))), TABS[tab], (80, 24))


@pytest.mark.parametrize("tab", TABS)
def test_tab_read_only_in_ascii(snap_compare: SnapCompare, tmp_path: Path, tab: str) -> None:
    look = Look(read_only=True, ascii=True)
    _compare(snap_compare, over(_pinned(fill(tmp_path / "tune.db")), look), TABS[tab], (100, 30))


@pytest.mark.parametrize("keys", [("5",), ("5", "enter"), ("5", "a")], ids="-".join)
@pytest.mark.parametrize("size", SIZES[::2], ids=lambda size: f"{size[0]}x{size[1]}")
def test_tab_compare_runs(
    snap_compare: SnapCompare,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keys: tuple[str, ...],
    size: tuple[int, int],
) -> None:
    ids = count(1)
    with monkeypatch.context() as patch:
        patch.setattr("uuid.uuid4", lambda: UUID(int=next(ids) << 96))
        path = record_runs(tmp_path / "tune.db")
    _compare(snap_compare, over(path), keys, size)


@pytest.mark.parametrize("keys", [("2", "enter"), ("2", "b", "j", "b"), ("2", "slash"), ("6", "p")], ids="-".join)
def test_tab_dialogs(snap_compare: SnapCompare, tmp_path: Path, keys: tuple[str, ...]) -> None:
    _compare(snap_compare, over(_pinned(fill(tmp_path / "tune.db"))), keys, (80, 24))


def _compare(snap_compare: SnapCompare, app: EmmyApp, keys: Sequence[str], size: tuple[int, int]) -> None:
    async def before(pilot: Pilot[None]) -> None:
        await press(app, pilot, *keys)

    assert snap_compare(app, terminal_size=size, run_before=before)


@pytest.mark.parametrize("keys", [("6", "tab"), ("6", "tab", "tab")], ids="-".join)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_tab_pins_with_suggestions(
    snap_compare: SnapCompare, tmp_path: Path, keys: tuple[str, ...], size: tuple[int, int]
) -> None:
    path = _pinned(fill(tmp_path / "tune.db"))
    suggest(path)
    _compare(snap_compare, over(path), keys, size)


@pytest.mark.parametrize("size", SIZES[::2], ids=lambda size: f"{size[0]}x{size[1]}")
def test_screen_floors(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    assert snap_compare(showing([*EVENTS, *floors()]), terminal_size=size)


def test_screen_machine_code(snap_compare: SnapCompare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emmy_tui.variant_asking.compiled", lambda read, target: assembled(read))
    _compare(snap_compare, over(fill(tmp_path / "tune.db")), ("2", "a"), (100, 30))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_screen_health(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    app = showing([*EVENTS[: len(EVENTS) * 3 // 5], *COMPILING], capabilities=("pause", "stop", "skip", "patience"))
    assert snap_compare(app, press=("H",), terminal_size=size)


@pytest.mark.parametrize("keys", [("3", "F"), ("2", "o"), ("A",)], ids="-".join)
def test_steering_dialogs(snap_compare: SnapCompare, tmp_path: Path, keys: tuple[str, ...]) -> None:
    path = only_eight_warps_fail(fill(tmp_path / "tune.db"))
    with Store.open(path, clock=lambda: START) as store:
        acted = Acted(at=START, verb="retune", kernel=matmul().key, author="ana")
        store.record_events(store.runs()[0].id, [acted])
    _compare(snap_compare, over(path), keys, (80, 24))


def test_screen_why(snap_compare: SnapCompare) -> None:
    assert snap_compare(live(), press=("i",), terminal_size=(100, 30))


def test_screen_jump(snap_compare: SnapCompare) -> None:
    assert snap_compare(live(), press=("ctrl+o",), terminal_size=(100, 30))


def test_screen_terminal_colors(snap_compare: SnapCompare) -> None:
    assert snap_compare(showing(EVENTS[: len(EVENTS) * 3 // 5], Look(theme="ansi-dark")), terminal_size=(100, 30))


def test_screen_light(snap_compare: SnapCompare) -> None:
    app = showing(EVENTS[: len(EVENTS) * 3 // 5], Look(theme="textual-light"))
    assert snap_compare(app, terminal_size=(100, 30))


def test_screen_without_color(snap_compare: SnapCompare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = showing(EVENTS[: len(EVENTS) * 3 // 5], Look(no_color=True))
    assert snap_compare(app, terminal_size=(100, 30))


def test_screen_in_ascii(snap_compare: SnapCompare) -> None:
    app = showing(EVENTS[: len(EVENTS) * 3 // 5], Look(ascii=True))
    assert snap_compare(app, terminal_size=(160, 45))


def test_screen_start(snap_compare: SnapCompare) -> None:
    assert snap_compare(application(None, demo=ScriptedSource), terminal_size=(80, 24))


def test_screen_help(snap_compare: SnapCompare) -> None:
    assert snap_compare(live(), press=("question_mark",), terminal_size=(100, 45))


def test_screen_too_small(snap_compare: SnapCompare) -> None:
    assert snap_compare(live(), terminal_size=(50, 12))


async def test_no_color_leaves_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = showing(EVENTS, Look(no_color=True))
    async with running(app, (120, 40)):
        styles = [segment.style for strip in strips(app) for segment in strip if segment.style]
        assert all(style.color is None or style.color.is_default for style in styles)
        assert all(style.bgcolor is None or style.bgcolor.is_default for style in styles)
        assert any(style.reverse for style in styles)


@pytest.mark.parametrize("size", [(160, 45), (80, 24), (60, 15)])
async def test_ascii_is_ascii(size: tuple[int, int]) -> None:
    app = showing([*EVENTS, Logged(at=START, level="info", text="größe ≤ 3 µs 🚀")], Look(ascii=True))
    async with running(app, size) as pilot:
        assert screen_text(app).isascii()
        for key in ("question_mark", "ctrl+p"):
            await pilot.press(key)
            await pilot.pause()
            assert screen_text(app).isascii()
            await pilot.press("escape")


TINY = [(20, 5), (1, 1), (2, 3), (59, 15), (60, 14), (60, 15), (79, 17), (3, 60), (200, 3), (200, 60), (119, 24)]


@pytest.mark.parametrize("events", [[], EVENTS], ids=["empty", "run"])
async def test_any_size_is_drawn_and_resized(events: Sequence[Event]) -> None:
    app = showing(events)
    async with running(app, (20, 5)) as pilot:
        for width, height in TINY:
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            app.tick()
            text = screen_text(app)
            assert all(cell_len(row) <= width for row in rows(app))
            if width < 60 or height < 15:
                assert "Kernels" not in text
            else:
                assert "Kernels" in text


async def test_too_small_says_so_and_keeps_the_state() -> None:
    app = showing(EVENTS)
    async with running(app, (40, 8)) as pilot:
        text = screen_text(app)
        assert "Too small" in text
        assert "60 x 15" in text
        assert "finished" in text
        for key in ("z", "f", "v", "tab", "shift+tab", "2", "L", "ctrl+o", "s"):
            app.footer.said = ""
            await pilot.press(key)
            assert app.footer.said == "The terminal is too small to show anything.", key
        await pilot.press("space")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "Kernels" in screen_text(app)


NASTY = (
    "[/a/b]",
    "a[i]=b[j]",
    "[bold]x[/]",
    "\\[x]",
    "[-Wfoo=1]",
    "$primary {x}",
    "@click=app.quit",
    "日本語",
    "e\u0301",
)
NAMES = st.one_of(
    st.sampled_from(NASTY),
    st.text(alphabet=st.sampled_from("[]/\\ab=$@'\"(){}<>%&;:#!|~^`*_-+.,🚀é日\x1b\x00\x07\x9b\n\t"), max_size=18),
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NAMES, NAMES, NAMES)
async def test_names_are_shown_byte_for_byte(label: str, knob: str, cause: str) -> None:
    """Names with brackets, escapes and wide characters: visible characters appear, control ones don't."""
    events = [replace(event, label=f"<{label}>") if isinstance(event, KernelFound) else event for event in EVENTS[:40]]
    schedule = Schedule.of({"KNOB": knob}).key
    events.append(
        Measured(
            at=START,
            kernel="5f1c",
            node="x",
            schedule=schedule,
            regime="ranking",
            status="failed",
            trial=1,
            failure="crash",
            cause=f"({cause})",
        )
    )
    app = showing(events)
    async with running(app, (200, 60)):
        text = screen_text(app)
    shown = "".join(" " if c in "\n\t" else c for c in label if c.isprintable() or c in "\n\t")
    assert f"<{shown}>" in text
    seen = "".join(" " if c in "\n\t" else c for c in cause if c.isprintable() or c in "\n\t")
    assert f"crash: ({seen})" in text
    assert not set(text) & set("\x1b\x00\x07\x9b")
