"""The application: it ticks, folds what its source sends, and lets panels repaint what moved.

Nothing touches a widget but this thread, and nothing on it waits: sources drain without blocking, and a bite of events
is bounded, so that a key press is answered between two bites whatever the engine does.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.events import Resize
from textual.geometry import Size
from textual.screen import Screen

from emmy_tui.actions import ACTIONS, BY_NAME, Action, Now, spoken
from emmy_tui.dialogs import Help, Leave
from emmy_tui.feed import BITE_S, Feed
from emmy_tui.notice import Notice
from emmy_tui.source import Mode, Source
from emmy_tui.tabs.live import PANELS, LiveTab
from emmy_tui.terminal import handle_signals
from emmy_tui.text import ASCII, UNICODE
from emmy_tui.view import View
from emmy_tui.widgets.footer import Footer
from emmy_tui.widgets.status import StatusLine, TabBar
from engine.events import RunState
from engine.snapshot import Snapshot

LOG = logging.getLogger("emmy_tui")

MIN_WIDTH, MIN_HEIGHT = 60, 15
CATCH_UP_S = 0.02
EXIT_OK, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 130
DARK, LIGHT = "textual-dark", "textual-light"


@dataclass(frozen=True, slots=True)
class Look:
    """How the screen looks and how often it is drawn."""

    fps: float = 4.0
    ascii: bool = False
    theme: str = DARK
    read_only: bool = False
    no_color: bool = False


class EmmyApp(App[None]):
    """`source` is None on the start screen, from which `demo` opens a replay; `bite_s` bounds one bite of events."""

    CSS_PATH = "emmy.tcss"
    TITLE = "emmy-tui"
    AUTO_FOCUS = "#tree"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(action.keys), action.name, action.label, show=False, priority=action.name == "interrupt")
        for action in ACTIONS
        if not action.in_list
    ]

    def __init__(
        self,
        source: Source | None,
        look: Look | None = None,
        *,
        demo: Callable[[], Source] | None = None,
        clock: Callable[[], float] = time.time,
        bite_s: float = BITE_S,
    ) -> None:
        self.look = look or Look()
        super().__init__(ansi_color=True if self.look.no_color else None)
        self.theme = "ansi-dark" if self.look.no_color else self.look.theme
        self.animation_level = "none"
        self.view = View(glyphs=ASCII if self.look.ascii else UNICODE, read_only=self.look.read_only)
        self._clock = clock
        self._bite_s = bite_s
        self._demo = demo
        self._shown: Snapshot | None = None
        self.crash: str | None = None
        self._feed: Feed | None = None
        self._leaving = False
        self._catching_up = False
        self.live = LiveTab(self.view)
        self.status_line = StatusLine(self.view, id="status")
        self.tab_bar = TabBar(self.view, id="tabs")
        self.footer = Footer(self.view)
        self.notice = Notice(self.view)
        if source is not None:
            self.attach(source)

    def _fatal_error(self) -> None:
        """In place of Textual's, which prints a traceback with local values: log it, keep one sentence, leave."""
        error = sys.exception()
        LOG.error("internal error", exc_info=error)
        self.crash = f"{type(error).__name__}: {error}"
        self._close_messages_no_wait()

    def compose(self) -> ComposeResult:
        yield self.status_line
        yield self.tab_bar
        yield self.live
        yield self.notice
        yield self.footer

    def on_mount(self) -> None:
        if not self.is_headless:
            handle_signals(self.leave_now, self.action_interrupt)
        self.app_resume_signal.subscribe(self, self._resumed)
        self.set_interval(1 / self.look.fps, self.tick)
        self._fit()
        self.tick()

    def _resumed(self, app: object) -> None:
        """Back from ctrl+z: Textual takes the screen again, and leaves it empty."""
        self.screen.refresh(layout=True)

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
        self.notice.too_small = small

    @property
    def source(self) -> Source | None:
        return self._feed.source if self._feed else None

    def attach(self, source: Source) -> None:
        """Show what this source sends from now on."""
        self._feed = Feed(source, self._bite_s)
        self.view.mode, self.view.title, self.view.database = source.mode, source.title, source.database
        self.view.snapshot = self._feed.snapshot

    @property
    def now(self) -> Now:
        """What decides which actions work."""
        source = self.source
        if source is None:
            return Now(roomy=False, can_demo=self._demo is not None)
        return Now(
            mode=source.mode,
            capabilities=source.capabilities,
            frozen=bool(self._feed and self._feed.frozen),
            focus=self.live.focused_panel(),
            kernels=len(self.view.snapshot.kernels),
            nodes=len(self.view.snapshot.nodes),
            roomy=not self.notice.too_small,
            shared_slot=self.live.shares_slot and not self.live.zoomed,
        )

    def tick(self) -> None:
        """Fold one bite and repaint what moved. Called on the pulse; between pulses a backlog is only folded."""
        self.view.now = self._clock()
        feed = self._feed
        if feed is None:
            self.paint_frame()
            return
        more = feed.bite()
        self._sync_view(feed)
        if more:
            self._catch_up()
        if len(self.screen_stack) == 1:
            if self.view.snapshot is not self._shown:
                self._shown = self.view.snapshot
                self.live.reset()
            self.live.update(feed.take_touched())
            self.paint_frame()
        if self._leaving and not self.view.busy:
            self.exit(return_code=EXIT_OK)

    def _sync_view(self, feed: Feed) -> None:
        view = self.view
        view.snapshot, view.state = feed.snapshot, feed.state
        view.frozen, view.held, view.dropped = feed.frozen, feed.held, feed.source.dropped
        if not view.busy:
            view.stop_asked_at = None

    def _catch_up(self) -> None:
        """Fold the backlog in short bites between pulses, leaving room for keys."""
        if not self._catching_up:
            self._catching_up = True
            self.set_timer(CATCH_UP_S, self._caught_up)

    def _caught_up(self) -> None:
        self._catching_up = False
        feed = self._feed
        if feed is not None:
            more = feed.bite()
            self._sync_view(feed)
            if more:
                self._catch_up()

    def paint_frame(self) -> None:
        """Repaint header, footer and notice where they changed."""
        self.footer.now = self.now
        for panel in (self.status_line, self.tab_bar, self.footer, self.notice):
            panel.repaint()

    def focus_panel(self, name: str) -> None:
        panel = self.live.panels.get(name)
        if panel is not None and panel.display:
            panel.focus()
        self.paint_frame()

    def on_descendant_focus(self) -> None:
        self.paint_frame()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        known = BY_NAME.get(action)
        return known.when(self.now) if known is not None and not known.in_list else True

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every action of the table; one that doesn't work now says why."""
        now = self.now
        for action in ACTIONS:
            if action.palette:
                works = action.when(now)
                meaning = action.meaning if works else f"Not now: {action.why_not(now)}"
                yield SystemCommand(palette_title(action), meaning, self._palette_call(action.name))

    def _palette_call(self, name: str) -> Callable[[], None]:
        def call() -> None:
            action = BY_NAME[name]
            if action.when(self.now):
                self.call_later(self.run_action, f"app.{name}")
            else:
                self.notify(action.why_not(self.now) or "Not now", severity="warning", markup=False)

        return call

    def leave_now(self, status: int) -> None:
        """Leave without waiting for the run; the caller of `run` closes the source."""
        if self.source is not None and self.view.busy:
            self.source.abort()
        self.exit(return_code=status)

    def action_leave(self) -> None:
        if self.source is None or not self.source.capabilities & {"stop"}:
            own = self.view.mode in (Mode.LIVE, Mode.REPLAY)
            self.exit(return_code=EXIT_FAILED if own and self.view.state == RunState.FAILED else EXIT_OK)
            return
        self.push_screen(Leave(self.view), self._answered)

    def _answered(self, answer: str | None) -> None:
        if answer == "stop":
            self._leaving = True
            self.action_stop()
        self.tick()

    def action_interrupt(self) -> None:
        """ctrl+c: the first stops the run after this candidate, the next leaves at once."""
        if self.view.busy and self.view.stop_asked_at is None and self.source is not None:
            self.action_stop()
            self.tick()
        else:
            self.leave_now(EXIT_INTERRUPTED if self.view.busy else EXIT_OK)

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(CommandPalette(placeholder="Search for an action", id="--command-palette"))

    def action_help(self) -> None:
        self.push_screen(Help(self.view, self.now))

    def action_toggle_theme(self) -> None:
        self.theme = LIGHT if self.current_theme.dark else DARK

    def action_demo(self) -> None:
        if self._demo is not None and self.source is None:
            self.attach(self._demo())
            self._fit()
            self.tick()
            self.call_after_refresh(self.focus_panel, "tree")

    def action_start(self) -> None:
        if self.source is not None:
            self.source.start()
            self.tick()

    def action_stop(self) -> None:
        if self.source is not None:
            self.view.stop_asked_at = self._clock()
            self.source.stop()

    def action_pause(self) -> None:
        if self.source is not None:
            self.source.pause()

    def action_resume(self) -> None:
        if self.source is not None:
            self.source.resume()

    def action_freeze(self) -> None:
        if self._feed is not None:
            self._feed.frozen = True
            self.tick()

    def action_unfreeze(self) -> None:
        if self._feed is not None:
            self._feed.frozen = False
            self.tick()

    def action_zoom(self) -> None:
        self.live.zoomed = "" if self.live.zoomed else self.live.focused_panel()
        self.live.place_panels()

    def action_follow(self) -> None:
        self.live.follow()

    def action_flip(self) -> None:
        self.live.flipped = not self.live.flipped
        self.live.place_panels()
        self.call_after_refresh(self.focus_panel, "curve" if self.live.flipped else "kernels")

    def action_focus_next_panel(self) -> None:
        self._focus_by(1)

    def action_focus_previous_panel(self) -> None:
        self._focus_by(-1)

    def _focus_by(self, step: int) -> None:
        names = [name for name in PANELS if self.live.panels[name].display]
        focused = self.live.focused_panel()
        if names:
            place = names.index(focused) + step if focused in names else 0
            self.focus_panel(names[place % len(names)])

    def choose_kernel(self, key: str) -> None:
        """Show this kernel in curve and tree."""
        self.view.chosen = key
        self.live.search_tree.show_kernel()
        self.live.repaint_all()

    def _choose_by(self, step: int) -> None:
        keys = list(self.view.snapshot.kernels)
        shown = self.view.kernel
        if shown is not None:
            self.choose_kernel(keys[(keys.index(shown.kernel) + step) % len(keys)])

    def action_next_kernel(self) -> None:
        self._choose_by(1)

    def action_previous_kernel(self) -> None:
        self._choose_by(-1)

    def action_log_scale(self) -> None:
        self.view.log_scale = not self.view.log_scale
        self.live.curve.repaint()

    def action_time_axis(self) -> None:
        self.view.by_time = not self.view.by_time
        self.live.curve.repaint()


def palette_title(action: Action) -> str:
    """An action as the palette lists it: its words and its key."""
    return f"{action.label}  {spoken(action.keys[0])}"
