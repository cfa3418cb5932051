"""The application: it ticks, folds what its source sends, and lets panels repaint what moved.

Nothing touches a widget but this thread, and nothing on it waits: sources drain without blocking, questions to the
database go to a desk, and a bite of events is bounded, so that a key press is answered between two bites whatever the
engine does.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.console import RenderableType
from textual._compositor import ChopsUpdate
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.command import Provider
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Resize
from textual.geometry import Size
from textual.screen import Screen

from emmy_tui import collecting
from emmy_tui._textual_compat import CroppedUpdate
from emmy_tui.action import FAILURES, LIVE, TABS, Now
from emmy_tui.actions import bindings
from emmy_tui.database_source import count_programs
from emmy_tui.desk import TURN_S, Desk
from emmy_tui.driver import TerminalDriver, TerminalGone
from emmy_tui.earlier import Earlier, close_aside
from emmy_tui.feed import BITE_S, Feed
from emmy_tui.leaving import Leaving
from emmy_tui.look import TERMINAL, Look
from emmy_tui.notice import Failure, Notice
from emmy_tui.outlet import Outlet
from emmy_tui.palette import Commands, Findings
from emmy_tui.pinning import Pinning
from emmy_tui.run_source import RunSource
from emmy_tui.source import Mode, Source
from emmy_tui.steering import Launch, Replays, Steering
from emmy_tui.tabs.compare import CompareTab
from emmy_tui.tabs.failures import FailuresTab
from emmy_tui.tabs.live import LiveTab
from emmy_tui.tabs.pins import PinsTab
from emmy_tui.tabs.prior import PriorTab
from emmy_tui.tabs.variants import VariantsTab
from emmy_tui.terminal import handle_signals, let_interrupts_go
from emmy_tui.text import ASCII, UNICODE
from emmy_tui.verbs import EXIT_FAILED, EXIT_OK
from emmy_tui.view import View
from emmy_tui.widgets.footer import Footer
from emmy_tui.widgets.status import StatusLine, TabBar
from engine.snapshot import Snapshot
from engine.store import StoredRun

LOG = logging.getLogger("emmy_tui")

MIN_WIDTH, MIN_HEIGHT = 60, 15
CATCH_UP_S = 0.02


class EmmyApp(Leaving):
    """`source` is None on the start screen, from which `demo` opens a replay; `bite_s` bounds one bite of events."""

    CSS_PATH = "emmy.tcss"
    TITLE = "emmy-tui"
    AUTO_FOCUS = "#kernels"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Commands, Findings}
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = bindings(lambda action: not action.in_list and not action.tabs)

    def __init__(
        self,
        source: Source | None,
        look: Look | None = None,
        *,
        demo: Callable[[], Source] | None = None,
        launch: Launch | None = None,
        replays: Replays | None = None,
        clock: Callable[[], float] = time.time,
        bite_s: float = BITE_S,
        early: Sequence[signal.Signals] = (),
    ) -> None:
        self.look, self._early = look or Look(), early
        super().__init__(ansi_color=True if self.look.no_color else None)
        self.theme = TERMINAL if self.look.no_color else self.look.theme
        self.animation_level = "none"
        self.set_keymap({name: ",".join(keys) for name, keys in self.look.keys.items()})
        self.view = View(glyphs=ASCII if self.look.ascii else UNICODE, read_only=self.look.read_only)
        self.view.keys = self.look.keys
        self._clock = clock
        self._bite_s = bite_s
        self._demo = demo
        self._shown: Snapshot | None = None
        self.crash: str | None = None
        self._feed = None
        self._earlier: Earlier | None = None
        self._leaving = False
        self._catching_up = False
        self.desk = Desk(self._on_this_thread, lambda sentence: self._say(sentence, "warning"))
        self.outlet = self._new_outlet()
        self.pinning = Pinning(self.desk, self.outlet, self._pins_changed)
        self.steering = Steering(
            self.view,
            self.desk,
            self.outlet,
            source=lambda: self.source,
            take_over=self._take_over,
            launch=launch,
            replays=replays,
        )
        self.live = LiveTab(self.view, self.desk, self.steering)
        self.variants = VariantsTab(self.view, self.desk, self.outlet, self.pinning, self.steering)
        self.failures = FailuresTab(self.view, self.desk, self.outlet)
        self.prior = PriorTab(self.view, self.desk, self.outlet)
        self.compare = CompareTab(self.view, self.desk, self.outlet)
        self.pins = PinsTab(self.view, self.desk, self.outlet, self.pinning, self.steering)
        shown = (self.live, self.variants, self.failures, self.prior, self.compare, self.pins)
        self.tabs = dict(zip(TABS, shown, strict=True))
        self.status_line = StatusLine(self.view, id="status")
        self.tab_bar = TabBar(self.view, id="tabs")
        self.footer = Footer(self.view)
        self.notice = Notice(self.view)
        self.failure = Failure(self.view, id="failure")
        if source is not None:
            self.attach(source)

    def _new_outlet(self) -> Outlet:
        folder, copy_file, aside, key = self.look.export_folder, self.look.copy_file, self.desk.aside, self.view.key
        return Outlet(
            self._say, self._send, folder=folder, copy_file=copy_file, clock=self._clock, aside=aside, key=key
        )

    def get_driver_class(self) -> type[Driver]:
        """Textual's own choice, and in place of its driver for this kind of terminal, ours."""
        chosen = super().get_driver_class()
        return TerminalDriver if chosen is LinuxDriver else chosen

    def ended(self, error: BaseException) -> None:
        """The keys can't be read any more: leave with the cause."""
        if isinstance(error, TerminalGone):
            LOG.warning("the terminal is gone (%s): leaving", error)
            self.leave_now(128 + signal.SIGHUP)
            return
        LOG.error("the keys can't be read", exc_info=error)
        self.crash = f"the keys can't be read: {type(error).__name__}: {error}"
        self.leave_now(EXIT_FAILED)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Send what changed, and no cell beside it."""
        super()._display(screen, CroppedUpdate.of(renderable) if isinstance(renderable, ChopsUpdate) else renderable)

    def _on_this_thread(self, call: Callable[[], None]) -> None:
        """Called by the desk's thread. What comes after the screen is gone is let go."""

        def while_there_is_a_screen() -> None:
            if self.live.is_attached and not self._exit:
                call()

        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.call_later(while_there_is_a_screen)

    def _say(self, text: str, severity: str) -> None:
        self.footer.say(text, warns=severity == "warning")
        self.paint_frame()

    def _send(self, escapes: str) -> None:
        if self._driver is not None:
            self._driver.write(escapes)

    def _pins_changed(self) -> None:
        self.variants.ask()
        self.pins.ask()
        self.paint_frame()

    def _fatal_error(self) -> None:
        """In place of Textual's, which prints a traceback with local values: log it, keep one sentence, leave."""
        error = sys.exception()
        LOG.error("internal error", exc_info=error)
        self.crash = f"{type(error).__name__}: {error}"
        self._close_messages_no_wait()

    def compose(self) -> ComposeResult:
        yield self.status_line
        yield self.tab_bar
        yield self.failure
        for tab in self.tabs.values():
            tab.set_class(tab is not self.tab, "behind")
            yield tab
        yield self.notice
        yield self.footer

    def on_mount(self) -> None:
        sys.setswitchinterval(TURN_S)
        if not self.is_headless:
            handle_signals(self.leave_now, self.action_interrupt, self._early)
        self.app_resume_signal.subscribe(self, self._resumed)
        self.set_interval(1 / self.look.fps, self.tick)
        self._fit()
        self.tick()

    async def on_unmount(self) -> None:
        if not self.is_headless:
            let_interrupts_go()
        await self.let_go()
        if self._earlier is not None:
            close_aside(self._earlier.feed.source)

    def _resumed(self, app: object) -> None:
        """Back from ctrl+z: Textual takes the screen again, and leaves it empty."""
        self.paint_anew()

    def on_resize(self, event: Resize) -> None:
        self._fit(event.size)
        self.call_after_refresh(self.paint_frame)

    def _fit(self, size: Size | None = None) -> None:
        """The notice takes the screen where panels have no room, or where there is nothing to show yet."""
        width, height = size or self.size
        small = width < MIN_WIDTH or height < MIN_HEIGHT
        screen = self.screen_stack[0]
        screen.set_class(small, "too-small")
        screen.set_class(height < 4, "tiny")
        screen.set_class(self.source is None and not small, "start")
        if self.notice.too_small and not small:
            self.call_after_refresh(self.tab.regain_focus)
        self.notice.too_small = small

    def attach(self, source: Source) -> None:
        """Show what this source sends from now on."""
        self._show(Feed(source, self._bite_s))
        if source.locate is not None and source.mode is not Mode.LIVE:
            self.desk.ask("programs", count_programs, self._programs_counted, lambda sentence: None)

    def _show(self, feed: Feed) -> None:
        self._feed, source = feed, feed.source
        self.view.mode, self.view.title, self.view.database = source.mode, source.title, source.database
        self.view.snapshot = feed.snapshot
        self.desk.connect(source.locate)

    def _take_over(self, source: Source, programs: int) -> None:
        """Show another source in place of this one: a database comes back later, any other is closed."""
        before = self._feed
        if before is not None and before.source.mode is Mode.BROWSE and self._earlier is None:
            self._earlier = Earlier.of(before, self.view)
        elif before is not None:
            close_aside(before.source)
        self.desk.leave()
        self.view.chosen, self.view.marked, self.view.programs = "", set(), programs
        self._show(Feed(source, self._bite_s))
        self.show_tab(LIVE)
        self.tick()

    def load_run(self, run: StoredRun) -> None:
        """Show a run of the database that is looked at, until a person goes back."""
        source = self.source
        if source is None or source.locate is None:
            return
        if source.mode is not Mode.BROWSE and self.view.busy:
            stop = self.view.key("stop")
            self.outlet.warn(f"the run is on: {stop} stops it, and another one can be looked at then")
            return
        locate = source.locate
        self.desk.aside(locate, lambda path: self._take_over(RunSource(path, run), 1), self.outlet.warn)

    def action_earlier(self) -> None:
        """The database that was looked at before, with its marks and its tab."""
        earlier = self._earlier
        if earlier is None:
            return
        if self.source is not None:
            self.source.abort()
            close_aside(self.source)
        self._earlier = None
        self._show(earlier.feed)
        earlier.put_back(self.view)
        self.show_tab(earlier.tab)
        self.tick()

    def _programs_counted(self, programs: int) -> None:
        self.view.programs = programs
        self.paint_frame()

    @property
    def now(self) -> Now:
        """What decides which actions work."""
        source = self.source
        if source is None:
            return Now(roomy=False, can_demo=self._demo is not None, key=self.view.key)
        return Now(
            mode=source.mode,
            capabilities=source.capabilities,
            frozen=bool(self._feed and self._feed.frozen),
            focus=self.tab.focused_panel(),
            kernels=len(self.view.snapshot.kernels),
            nodes=len(self.view.snapshot.nodes),
            roomy=not self.notice.too_small,
            shared_slot=self.tab.shares_slot and not self.tab.zoomed,
            tab=self.view.tab,
            items=self.tab.items,
            writable=not (self.look.read_only or self.view.unwritable) and source.locate is not None,
            unwritable=self.view.unwritable,
            undoable=self.failures.undoable if self.view.tab == FAILURES else self.pinning.undoable,
            filtered=self.tab.filtered,
            contexts=self.tab.contexts,
            corners=self.failures.corners,
            middle=self.live.middle,
            compiles=len(self.view.snapshot.compilers.numbers) if self.view.snapshot.compilers else 0,
            lines=self.tab.focused_lines,
            compared=self.compare.list.comparison is not None,
            trained=self.prior.trained,
            reading=self.view.reading or self.tab.reading,
            returns=self._earlier is not None,
            row=self.tab.row,
            key=self.view.key,
        )

    def tick(self) -> None:
        """Fold one bite and repaint what moved. Called on the pulse; between pulses a backlog is only folded."""
        collecting.look(covered=len(self.screen_stack) > 1)
        self.view.now = self._clock()
        feed = self._feed
        if feed is None:
            self.paint_frame()
            return
        more = feed.bite()
        self._sync_view(feed)
        if more:
            self._catch_up()
        if self.view.snapshot is not self._shown:
            self._shown = self.view.snapshot
            for tab in self.tabs.values():
                tab.reset()
        self.tab.update(feed.take_touched() if self.view.tab == LIVE else set())
        self.paint_frame()
        if self._leaving and not self.view.busy and not self.desk.unwritten:
            self.exit(return_code=EXIT_OK)

    def _sync_view(self, feed: Feed) -> None:
        view = self.view
        view.snapshot, view.clock, view.state, view.reason = feed.snapshot, feed.clock, feed.state, feed.reason
        view.frozen, view.held, view.dropped = feed.frozen, feed.held, feed.source.dropped
        view.badges = tuple(dict.fromkeys((*feed.source.badges, *self.desk.badges)))
        view.reading, view.trouble = feed.reading, feed.source.trouble
        view.unwritable, view.heard_s = feed.source.unwritable, feed.source.heard_s
        if view.lost is not feed.source.lost:
            view.lost = not view.lost
            view.snapshot.touch("kernels")
        if not view.busy:
            view.stop_asked_at = None

    def _catch_up(self) -> None:
        """Fold the backlog in short bites between pulses, leaving room for keys."""
        if not self._catching_up:
            self._catching_up = True
            self.set_timer(CATCH_UP_S, self._caught_up)

    def _caught_up(self) -> None:
        self._catching_up = False
        collecting.look(covered=len(self.screen_stack) > 1)
        feed = self._feed
        if feed is not None:
            more = feed.bite()
            self._sync_view(feed)
            if more:
                self._catch_up()

    def paint_frame(self) -> None:
        """Repaint header, footer and notice where they changed."""
        self.footer.now, self.footer.covered = self.now, len(self.screen_stack) > 1
        self.footer.waiting = self.desk.waiting
        self.footer.fit(self.size.width)
        self.failure.fit(*self.size)
        for panel in (self.status_line, self.tab_bar, self.failure, self.footer, self.notice):
            panel.repaint()

    def on_descendant_focus(self) -> None:
        self.paint_frame()

    def action_demo(self) -> None:
        if self._demo is not None and self.source is None:
            self.attach(self._demo())
            self._fit()
            self.tick()
            self.call_after_refresh(self.focus_panel, "kernels")
