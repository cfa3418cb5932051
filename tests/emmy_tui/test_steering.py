"""Steering: skip, patience, tune again, the queue, ending a compile, and what is said where something is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from emmy_tui import format as fmt
from emmy_tui import opening
from emmy_tui.app import EmmyApp
from emmy_tui.dialogs import Reading
from emmy_tui.look import Look
from emmy_tui.main import arguments_parser
from emmy_tui.opening import retune_source
from emmy_tui.refusal import BadInput
from emmy_tui.source import Again, Mode, Source
from emmy_tui.steering import Confirm, names
from emmy_tui.text import UNICODE, plain
from emmy_tui.view import View
from emmy_tui.widgets.event_log import entries, entry_line
from emmy_tui.widgets.kernel_name import known_name
from emmy_tui.widgets.status import status_line
from emmy_tui.widgets.totals import kernels_alone, program_name, program_sum_us
from engine.events import Acted, Health, KernelFinished, KernelFound, KernelStarted, QueueChanged, RunFinished
from engine.session import TuningSession
from engine.snapshot import apply
from engine.store import Store
from engine.tune import Settings
from tests.emmy_tui.looking import NOW, application, running, screen_text, showing
from tests.emmy_tui.measured import CONTEXT, events, fill, matmul, over, press, relu, schedules, settled
from tests.emmy_tui.scripted import COMPILING, START, ScriptedSource, search_events

VERBS = ("pause", "stop", "skip", "patience", "retune")
EVENTS = search_events()
TUNING = EVENTS[: next(n for n, event in enumerate(EVENTS) if isinstance(event, KernelFinished))]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


def source_of(app: EmmyApp) -> ScriptedSource:
    assert isinstance(app.source, ScriptedSource)
    return app.source


async def test_the_kernel_that_is_tuned_is_skipped() -> None:
    app = showing(TUNING, capabilities=VERBS)
    async with running(app, (120, 40)) as pilot:
        await pilot.press("x")
        assert source_of(app).asked == ["skip 5f1c"]
        assert "matmul is skipped" in app.footer.said


@pytest.mark.parametrize(
    ("key", "words"),
    [("x", "no kernel is being tuned"), ("plus", "no kernel is being tuned at the moment, and none waits")],
)
async def test_nothing_to_skip_or_to_be_patient_with_is_said(key: str, words: str) -> None:
    app = showing(EVENTS, capabilities=VERBS)
    async with running(app, (120, 40)) as pilot:
        await pilot.press(key)
        assert source_of(app).asked == []
        assert words in app.footer.said


async def test_patience_goes_up_and_down_and_never_below_one() -> None:
    app = showing(TUNING, capabilities=VERBS)
    async with running(app, (120, 40)) as pilot:
        await pilot.press("plus")
        source_of(app).add(Acted(at=START, verb="patience", kernel="5f1c", value=4, detail="4", author="ana"))
        app.tick()
        await pilot.press("minus")
        assert source_of(app).asked == ["patience 5f1c 60", "patience 5f1c 1"]
        assert "ana asked: patience matmul 4" in screen_text(app)


async def test_patience_right_after_a_skip_goes_to_the_next_kernel() -> None:
    app = showing(TUNING, capabilities=VERBS)
    async with running(app, (120, 40)) as pilot:
        await pilot.press("x", "plus")
        assert source_of(app).asked == ["skip 5f1c", "patience 9ab0 60"]
        assert "linear_gelu: patience 60 once it is its turn" in app.footer.said
        await pilot.press("x")
        assert "no kernel is being tuned" in app.footer.said


async def test_a_followed_database_is_not_steered() -> None:
    app = showing(EVENTS, mode=Mode.BROWSE, capabilities=())
    async with running(app, (120, 40)) as pilot:
        await pilot.press("x")
        assert "only looked at" in app.footer.said
        await pilot.press("r")
        assert "reading only" in app.footer.said


async def test_marked_kernels_are_queued_behind_the_run(database: Path) -> None:
    source = ScriptedSource(events(), capabilities=VERBS, locate=lambda: database)
    app = application(source)
    async with running(app, (120, 40)) as pilot:
        app.focus_panel("kernels")
        await press(app, pilot, "g", "m", "j", "m", "r")
        first, second = app.view.snapshot.kernels
        assert source.asked == [f"enqueue {first}", f"enqueue {second}"]
        assert "queued behind the run" in app.footer.said
        source.add(QueueChanged(at=START, kernels=(second,)))
        app.tick()
        await press(app, pilot, "A")
        assert isinstance(app.screen, Reading)
        assert "1  relu" in screen_text(app)


async def test_acts_of_the_database_are_listed_with_who_and_when(database: Path) -> None:
    with Store.open(database) as store:
        retuned = Acted(at=START, verb="retune", kernel=matmul().key, author="ana")
        store.record_events(store.runs()[0].id, [retuned, Acted(at=START + 1, verb="pause", author="bo")])
    app = over(database)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "A")
        text = screen_text(app)
        assert text.index("bo        pause") < text.index("ana       retune matmul")


class Launches:
    """A way to tune that only remembers."""

    def __init__(self, refusal: str = "") -> None:
        self.wanted: list[Sequence[Again]] = []
        self.replayed: list[tuple[Path, list[str]]] = []
        self.begun = ScriptedSource(TUNING, capabilities=VERBS)
        self._refusal = refusal

    def launch(self, path: Path, wanted: Sequence[Again]) -> Source:
        if self._refusal:
            raise BadInput(self._refusal)
        self.wanted.append(wanted)
        return self.begun

    def replay(self, path: Path, wanted: Sequence[Again]) -> Source:
        self.replayed.append((path, [one.label for one in wanted]))
        return ScriptedSource(EVENTS, mode=Mode.REPLAY)


def with_launch(path: Path, launches: Launches, look: Look | None = None) -> EmmyApp:
    look = replace(look or Look(), export_folder=path.parent, copy_file=path.parent / "copied.txt")
    source = ScriptedSource(events(), mode=Mode.BROWSE, locate=lambda: path, capabilities=())
    return EmmyApp(source, look, clock=lambda: NOW, bite_s=60.0, launch=launches.launch, replays=launches.replay)


async def test_a_kernel_is_tuned_again_once_confirmed(database: Path) -> None:
    launches = Launches()
    app = with_launch(database, launches)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "2", "r")
        assert isinstance(app.screen, Confirm)
        await press(app, pilot, "escape")
        assert app.source is not launches.begun
        await press(app, pilot, "r", "enter")
        assert app.source is launches.begun
        assert launches.begun.asked == ["start"]
        assert app.view.tab == "live"
        assert [one.label for one in launches.wanted[-1]] == ["matmul"]


async def test_without_a_gpu_it_says_what_is_missing_and_offers_the_replay(database: Path) -> None:
    launches = Launches("there is no NVIDIA driver on this machine; browse instead")
    app = with_launch(database, launches)
    async with running(app, (80, 24)) as pilot:
        await press(app, pilot, "r")
        assert "No GPU to tune on" in screen_text(app)
        text = screen_text(app)
        assert "there is no NVIDIA driver" in text
        assert "replay the recorded search of matmul" in text
        await press(app, pilot, "enter")
        assert launches.replayed == [(database, ["matmul"])]
        assert app.view.mode is Mode.REPLAY
        await press(app, pilot, "r")
        assert not isinstance(app.screen, Confirm)


async def test_marks_and_the_database_come_back_after_a_replay(database: Path) -> None:
    launches = Launches("there is no NVIDIA driver on this machine; browse instead")
    app = with_launch(database, launches)
    async with running(app, (80, 24)) as pilot:
        browsed, kernels = app.source, set(app.view.snapshot.kernels)
        app.focus_panel("kernels")
        await press(app, pilot, "backspace")
        assert "Nothing was looked at before this" in app.footer.said
        await press(app, pilot, "g", "m", "j", "m", "r")
        assert "recorded search of matmul" in screen_text(app)
        await press(app, pilot, "enter")
        assert [labels for _, labels in launches.replayed] == [["matmul", "relu"]]
        assert app.view.mode is Mode.REPLAY
        assert app.view.programs == 2
        await press(app, pilot, "2", "backspace")
        assert app.source is browsed
        assert app.view.mode is Mode.BROWSE
        assert app.view.marked == kernels
        assert set(app.view.snapshot.kernels) == kernels
        assert app.view.tab == "live"
        await press(app, pilot, "backspace")
        assert app.source is browsed


async def test_one_does_not_go_back_from_a_run_that_is_on(database: Path) -> None:
    launches = Launches()
    app = with_launch(database, launches)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "r", "enter", "backspace")
        assert app.source is launches.begun
        assert "The run is on: X stops it" in app.footer.said


def test_a_replay_holds_the_wanted_kernels_and_no_others(tmp_path: Path) -> None:

    path = fill(tmp_path / "tune.db")
    session = TuningSession.replay(path, settings=Settings(patience=5), kernels=(matmul().key,))
    session.start()
    assert session.wait(60)
    found = session.drain(100_000)
    assert {event.kernel for event in found if isinstance(event, KernelFound)} == {matmul().key}
    (finished,) = [event for event in found if isinstance(event, RunFinished)]
    assert finished.best_us is not None


def test_marked_kernels_are_replayed_as_runs_of_their_own_and_add_up(tmp_path: Path) -> None:
    path, keys = fill(tmp_path / "tune.db"), (matmul().key, relu().key)
    session = TuningSession.replay(path, settings=Settings(patience=5), kernels=keys)
    session.start()
    assert session.wait(60)
    shown = View(mode=Mode.REPLAY, programs=2)
    told: list[str] = []
    for event in session.drain(100_000):
        apply(shown.snapshot, event)
        shown.state = shown.snapshot.state
        told.append(plain(status_line(shown, 160)))
    snapshot = shown.snapshot
    assert len(snapshot.programs) == 2
    assert [row.kernels for row in snapshot.groupings.values()] == [(key,) for key in keys]
    assert kernels_alone(snapshot)
    assert program_name(shown) == ""
    times = [snapshot.kernels[key].chosen_us for key in keys]
    assert program_sum_us(snapshot) == sum(us or 0.0 for us in times)
    assert not any("program" in line for line in told)
    counts = [word for line in told for word in line.split() if word in ("0/2", "1/2", "2/2", "0/1", "1/1")]
    assert list(dict.fromkeys(counts)) == ["0/2", "1/2", "2/2"]
    ends = [plain(entry_line(entry, snapshot, 200, UNICODE)) for entry in entries(snapshot.log)]
    assert f"2 kernels: measured {snapshot.measured}" in ends[-2] + ends[-1]
    assert f"Σ {fmt.us(sum(us or 0.0 for us in times))} us" in ends[-2] + ends[-1]


async def test_a_pin_is_measured_on_demand_and_is_not_stale_for_want_of_a_time(database: Path) -> None:
    typed = schedules(matmul(), 400)[-1]
    with Store.open(database, clock=lambda: START) as store:
        store.record_pin(matmul().key, typed, CONTEXT.key, author="ana")
    launches = Launches()
    app = with_launch(database, launches)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "6", "m", "escape", "R")
        assert "No pin is stale" in app.footer.said
        await press(app, pilot, "r", "escape")
        assert [one.schedule for (one,) in launches.wanted] == [typed, None]


async def test_reading_only_tunes_nothing(database: Path) -> None:
    launches = Launches()
    app = with_launch(database, launches, Look(read_only=True))
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "r", "2", "r", "6", "r", "R", "m")
        assert launches.wanted == []


async def test_reading_only_offers_no_mark(database: Path) -> None:
    for look, offered in ((Look(read_only=True), False), (Look(), True)):
        app = with_launch(database, Launches(), look)
        async with running(app, (200, 45)) as pilot:
            app.focus_panel("kernels")
            await pilot.pause()
            app.paint_frame()
            await pilot.pause()
            assert ("m Mark" in screen_text(app).splitlines()[-1]) == offered
            await press(app, pilot, "m")
            assert bool(app.view.marked) == offered


async def test_a_kernel_is_named_with_its_shape_where_another_has_its_label(database: Path) -> None:
    launches = Launches()
    app = with_launch(database, launches)
    with Store.open(database, clock=lambda: START) as store:
        store.record_pin(matmul().key, schedules(matmul(), 400)[-1], CONTEXT.key, author="ana")
    async with running(app, (120, 30)) as pilot:
        kernels = app.view.snapshot.kernels
        kernels["twin"] = replace(kernels[matmul().key], kernel="twin", shape="9x9x9 bfloat16")
        name = known_name(matmul().key, "matmul", app.view.snapshot)
        assert name != "matmul"
        for keys in (("2", "r"), ("6", "r"), ("6", "m")):
            await press(app, pilot, *keys)
            assert isinstance(app.screen, Confirm)
            assert name in screen_text(app)
            await press(app, pilot, "escape")
            assert app.tab.row.name == name
        assert {one.label for wanted in launches.wanted for one in wanted} == {name}
    assert known_name("unknown", "matmul", app.view.snapshot) == "matmul"


def test_many_kernels_are_named_in_short() -> None:
    assert names([Again(str(n), f"k{n}") for n in range(9)]).endswith("k5 and 3 more")


def test_what_a_machine_lacks_is_named_before_anything_is_opened(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = arguments_parser().parse_args([str(database)])
    monkeypatch.setattr(opening, "find_spec", lambda name: name)
    monkeypatch.setattr(opening, "has_driver", lambda: False)
    with pytest.raises(BadInput, match="no NVIDIA driver"):
        retune_source(options, database, [Again("k", "matmul")])
    monkeypatch.setattr(opening, "has_driver", lambda: True)
    assert retune_source(options, database, [Again("k", "matmul")]).capabilities == {"start"}


async def test_health_says_what_the_devices_do_without() -> None:
    without = "each new benchmark process takes seconds: no process is left"
    health = Health(at=2.0, search_share=0.1, gpu_idle_share=0.1, compiling=0, respawns=0, missing=(without,))
    app = showing([*TUNING, health], capabilities=VERBS)
    async with running(app, (120, 40)) as pilot:
        await pilot.press("H")
        await pilot.pause()
        assert without in screen_text(app)


async def test_health_names_processes_and_a_compile_is_ended() -> None:
    app = showing([*TUNING, *COMPILING], capabilities=VERBS)
    async with running(app, (120, 40)) as pilot:
        await pilot.press("H")
        await pilot.pause()
        text = screen_text(app)
        for words in (
            "2 compiles under way",
            "3.2 s",
            "pid 4711",
            "timing since 0.1 s",
            "an illegal access",
            "GPU idle",
        ):
            assert words in text
        assert app.live.focused_panel() == "health"
        await pilot.press("K")
        assert source_of(app).asked == ["kill 7"]
        await pilot.press("H")
        await pilot.pause()
        assert app.live.search_tree.display
        for key in ("H", "o"):
            await pilot.press(key)
            await pilot.pause()
            assert not app.live.search_tree.display
            await pilot.press("escape")
            await pilot.pause()
            assert app.live.search_tree.display


async def test_the_best_grouping_is_a_graph(database: Path) -> None:
    app = showing(TUNING)
    async with running(app, (120, 40)) as pilot:
        await pilot.press("o")
        await settled(app, pilot)
        assert "there is no database behind what is shown" in screen_text(app)
        assert not app.live.search_tree.display


async def test_a_forbidden_branch_says_so_under_why() -> None:
    started = KernelStarted(at=START, kernel="5f1c", patience=50, forbidden=("BLOCK_M=16",))
    app = showing([*TUNING, started])
    async with running(app, (120, 40)) as pilot:
        app.focus_panel("tree")
        node = next(
            n for n, row in app.view.snapshot.nodes.items() if row.kernel == "5f1c" and row.label == "BLOCK_M=16"
        )
        app.view.node = node
        await pilot.press("i")
        await pilot.pause()
        assert "BLOCK_M=16: nothing with all of these values is proposed" in screen_text(app)
