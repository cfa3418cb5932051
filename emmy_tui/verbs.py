"""What the application does for its keys, apart from drawing: steering the run, leaving, tabs, and pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette

from emmy_tui.action import COMPARE, FAILURES, LIVE, PINS, PRIOR, VARIANTS, Now
from emmy_tui.desk import Desk
from emmy_tui.dialogs import Leave
from emmy_tui.driver import TerminalDriver
from emmy_tui.feed import Feed
from emmy_tui.help import Help
from emmy_tui.jump import Jump, letters_of
from emmy_tui.look import Look, theme_after
from emmy_tui.outlet import Outlet
from emmy_tui.source import Mode, Source
from emmy_tui.tabs.live import LiveTab
from emmy_tui.tabs.tab import Tab
from emmy_tui.view import View

EXIT_OK, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 130


class Verbs(App[None]):
    """The actions of the application. The subclass owns what they act on."""

    look: Look
    view: View
    outlet: Outlet
    desk: Desk
    tabs: dict[str, Tab]
    live: LiveTab
    _feed: Feed | None
    _demo: Callable[[], Source] | None
    _clock: Callable[[], float]
    _leaving: bool

    @property
    def source(self) -> Source | None:
        return self._feed.source if self._feed else None

    @property
    def tab(self) -> Tab:
        """The tab at the front."""
        return self.tabs[self.view.tab]

    @property
    def now(self) -> Now:
        raise NotImplementedError

    def tick(self) -> None:
        raise NotImplementedError

    def attach(self, source: Source) -> None:
        raise NotImplementedError

    def paint_frame(self) -> None:
        raise NotImplementedError

    @property
    def own_failure(self) -> str:
        """Why the run that this screen started failed; "" if it did not."""
        return self.view.failure if self.view.mode in (Mode.LIVE, Mode.REPLAY) else ""

    def focus_panel(self, name: str) -> None:
        self.tab.focus_panel(name)
        self.paint_frame()

    def push_screen(self, *given: Any, **named: Any) -> Any:
        """What opens now is what a person looks at: an answer that comes later opens nothing over it."""
        over = bool(self.screen_stack)
        pushed = super().push_screen(*given, **named)
        self._turned(over)
        return pushed

    def pop_screen(self) -> AwaitComplete:
        popped = super().pop_screen()
        self._turned(True)
        return popped

    def _turned(self, over: bool) -> None:
        self.desk.leave()
        if over:
            self.call_later(self.paint_frame)

    def leave_now(self, status: int) -> None:
        """Leave without waiting for the run; the caller of `run` closes the source."""
        if self.source is not None and self.view.busy:
            self.source.abort()
        self.exit(return_code=status)

    def action_leave(self) -> None:
        if self.source is None or not self.source.capabilities & {"stop"}:
            self.exit(return_code=EXIT_FAILED if self.own_failure else EXIT_OK)
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
            self.leave_now(EXIT_INTERRUPTED if self.view.busy else EXIT_FAILED if self.own_failure else EXIT_OK)

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(
                CommandPalette(placeholder="Search for an action, a kernel or a run", id="--command-palette")
            )

    def action_help(self) -> None:
        self.push_screen(Help(self.view, self.now))

    def action_toggle_theme(self) -> None:
        self.theme = theme_after(self.current_theme, self.look.theme)

    def action_redraw(self) -> None:
        self.paint_anew()

    def paint_anew(self) -> None:
        """The whole screen, whatever the terminal shows."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.forget_shown()
        if not self._exit:
            self.screen.refresh(layout=True)

    def action_picture(self) -> None:
        """The whole screen as an SVG and as text."""
        self.outlet.write("screen", {"svg": self.export_screenshot(title="emmy-tui"), "txt": screen_text(self)})

    def action_jump(self) -> None:
        """Show a letter on every panel that takes the focus, and wait for one."""
        panels = [name for name in self.tab.order if self.tab.panels[name].display]
        self.view.letters = letters_of(panels)
        self.tab.repaint_all()

        def chosen(name: str | None) -> None:
            self.view.letters = {}
            self.tab.repaint_all()
            if name:
                self.focus_panel(name)

        self.push_screen(Jump(self.view.letters), chosen)

    def show_tab(self, name: str) -> None:
        """Bring a tab to the front; the others keep what they showed."""
        if name not in self.tabs or name == self.view.tab:
            return
        self.desk.leave()
        self.view.tab = name
        for other, tab in self.tabs.items():
            tab.set_class(other != name, "behind")
        self.tab.shown()
        self.screen.set_focus(self.tab.panels[self.tab.first], scroll_visible=False)
        self.tick()

    def action_tab_live(self) -> None:
        self.show_tab(LIVE)

    def action_tab_variants(self) -> None:
        self.show_tab(VARIANTS)

    def action_tab_failures(self) -> None:
        self.show_tab(FAILURES)

    def action_tab_pins(self) -> None:
        self.show_tab(PINS)

    def action_tab_prior(self) -> None:
        self.show_tab(PRIOR)

    def action_tab_compare(self) -> None:
        self.show_tab(COMPARE)

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
        self.tab.zoom()

    def action_focus_next_panel(self) -> None:
        self.tab.focus_by(1)
        self.paint_frame()

    def action_focus_previous_panel(self) -> None:
        self.tab.focus_by(-1)
        self.paint_frame()

    def action_focus_next(self) -> None:
        """What Textual's screens bind to tab, in the order of the panels and not of the widgets."""
        if len(self.screen_stack) > 1:
            super().action_focus_next()
        else:
            self.action_focus_next_panel()

    def action_focus_previous(self) -> None:
        if len(self.screen_stack) > 1:
            super().action_focus_previous()
        else:
            self.action_focus_previous_panel()

    def choose_kernel(self, key: str) -> None:
        """Show this kernel in curve, tree and variants."""
        self.desk.leave()
        self.view.chosen = key
        for tab in self.tabs.values():
            tab.choose_kernel()

    def jump_to_kernel(self, key: str, tab: str) -> None:
        """Show this kernel on a tab, with the cursor on it."""
        self.choose_kernel(key)
        self.show_tab(tab)
        self.tab.focus_panel(self.tab.first)
        self.tick()

    def _choose_by(self, step: int) -> None:
        keys = [row.kernel for row in self.live.kernel_panel.ordered()]
        here = self.tab.kernel_here()
        shown = here if here is not None and here.kernel in keys else self.view.kernel
        if shown is not None:
            self.choose_kernel(keys[(keys.index(shown.kernel) + step) % len(keys)])
            self.tick()

    def action_next_kernel(self) -> None:
        self._choose_by(1)

    def action_previous_kernel(self) -> None:
        self._choose_by(-1)


def screen_text(app: App[None]) -> str:
    """What the terminal shows, a line a row."""
    strips = app.screen._compositor.render_strips()
    return "".join(strip.text.rstrip() + "\n" for strip in strips)
