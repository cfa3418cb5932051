"""What the tabs share: a box of panels with a zoom, a focus that goes round, and the actions that are theirs alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from textual.binding import BindingType
from textual.containers import Container
from textual.events import DescendantFocus

from emmy_tui.action import Row
from emmy_tui.actions import BY_NAME, bindings
from emmy_tui.desk import Desk
from emmy_tui.outlet import Outlet
from emmy_tui.text import plain
from emmy_tui.view import View
from emmy_tui.widgets.panel import ListPanel, Panel
from engine.snapshot import KernelRow
from engine.store import Store

T = TypeVar("T")

OTHER_LINES = 3
"""Lines of the screen that belong to no tab: status, tabs, footer."""


class Tab(Container):
    """A subclass names its panels and places them; `update` brings those that are seen up to date."""

    order: ClassVar[tuple[str, ...]] = ()
    """Panels that take the focus, in the order of the tab key."""
    first: ClassVar[str] = ""
    """The panel that gets the focus when the tab is shown."""

    def __init__(self, view: View, *, id: str) -> None:
        super().__init__(id=id)
        self.view = view
        self.zoomed = ""
        self._focused_last = ""
        self._waiting = False
        """Whether the database was asked for the rows and has not answered yet."""
        self._about: object = None
        self._answered_about: object = None
        """What the newest question for rows is about, and what the rows that are seen are."""

    @property
    def panels(self) -> dict[str, Panel]:
        raise NotImplementedError

    @property
    def items(self) -> int:
        """Rows of the tab's list."""
        return 0

    @property
    def row(self) -> Row:
        """What can be done with the row under the cursor of the tab's list."""
        return Row()

    @property
    def contexts(self) -> int:
        """Contexts that the tab's rows can be shown of."""
        return 0

    @property
    def shares_slot(self) -> bool:
        """Whether two panels take turns in one place, for want of room."""
        return False

    @property
    def filtered(self) -> bool:
        return False

    @property
    def behind(self) -> bool:
        """Whether the rows that are seen are of another kernel, filter or order than is meant by now: what is pressed
        then is not meant for them."""
        return self._about != self._answered_about

    @property
    def unread(self) -> bool:
        """Whether these rows, or the one under the cursor, are still on their way."""
        return self.behind

    def must_wait(self, outlet: Outlet) -> bool:
        """Whether the rows that are meant are not seen yet; says so."""
        if self.behind:
            outlet.warn("the rows are still being read")
        return self.behind

    @property
    def reading(self) -> bool:
        """Whether the rows of the tab's list are still on their way."""
        return (self._waiting or self.behind) and not self.items

    @property
    def focused_lines(self) -> int:
        """Lines of the list that has the focus; 0 where none has it."""
        panel = self.panels.get(self.focused_panel())
        return panel.count() if isinstance(panel, ListPanel) else 0

    def ask_for_rows(
        self,
        desk: Desk,
        question: Callable[[Store], T],
        then: Callable[[T], None],
        failed: Callable[[str], None],
        *,
        again: bool = True,
        about: object = None,
    ) -> None:
        """Put the question for the rows of the list, as `Desk.ask` does; until its answer the tab may be `reading`, and
        `behind` where it is about something else than the one before."""
        self._waiting, self._about = True, about
        desk.ask(self.id or "", question, self._answered(then, about), self._answered(failed, about), again=again)

    def _answered(self, then: Callable[[T], None], about: object) -> Callable[[T], None]:
        def answered(answer: T) -> None:
            self._waiting, self._answered_about = False, about
            then(answer)

        return answered

    def place(self, width: int, height: int) -> None:
        """Give the panels their places; the zoomed one is alone."""
        raise NotImplementedError

    def update(self, touched: set[str]) -> None:
        """Take in what the snapshot has new. `touched` are the tree nodes that changed."""

    def reset(self) -> None:
        """The snapshot is another one."""

    def kernel_here(self) -> KernelRow | None:
        """The kernel that the tab shows."""
        return self.view.kernel

    def choose_kernel(self) -> None:
        """The view shows another kernel."""

    def shown(self) -> None:
        """The tab has come to the front."""

    def on_mount(self) -> None:
        """Place the panels before they are first seen: the tab's own size is known only afterwards."""
        width, height = self.app.size
        self.place(width, height - OTHER_LINES)

    def on_resize(self) -> None:
        self.place_panels()
        self.call_after_refresh(self.regain_focus)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        self._focused_last = self.focused_panel() or self._focused_last

    def regain_focus(self) -> None:
        """Where the panel with the focus was hidden for want of room, the focus is nowhere: give it back."""
        if (self.id or "").removesuffix("-tab") != self.view.tab or not self.is_attached or self.focused_panel():
            return
        seen = [name for name in (self._focused_last, self.first, *self.order) if name in self.panels]
        name = next((name for name in seen if self.panels[name].focusable), "")
        if name:
            self.screen.set_focus(self.panels[name], scroll_visible=False)

    def place_panels(self) -> None:
        self.place(self.size.width, self.size.height)

    def repaint_all(self) -> None:
        for panel in self.panels.values():
            panel.repaint()

    def focused_panel(self) -> str:
        focused = self.screen.focused if self.is_attached else None
        return focused.id or "" if isinstance(focused, Panel) and focused.id in self.panels else ""

    def focus_panel(self, name: str) -> None:
        panel = self.panels.get(name)
        if panel is not None and panel.display:
            panel.focus()

    def focus_by(self, step: int) -> None:
        names = self.reachable()
        focused = self.focused_panel()
        if names:
            place = names.index(focused) + step if focused in names else 0
            self.open_panel(names[place % len(names)])
            self.focus_panel(names[place % len(names)])

    def reachable(self) -> list[str]:
        """The panels that the tab key goes through."""
        return [name for name in self.order if self.panels[name].display]

    def name_left_out(self) -> None:
        """Let the panel with the focus say which others the tab key leads to, that there is no room for."""
        names = [plain(self.panels[name].title()) for name in self.reachable() if not self.panels[name].display]
        for panel in self.panels.values():
            panel.left_out = f"{self.view.key('focus_next_panel')}: {', '.join(names)}" if names else ""

    def open_panel(self, name: str) -> None:
        """Make a panel seen that is to get the focus, where it is left out for want of room."""

    def zoom(self) -> None:
        self.zoomed = "" if self.zoomed else self.focused_panel()
        self.place_panels()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        known = BY_NAME.get(action)
        return known.when(self.app.now) if known is not None and known.tabs else True  # type: ignore[attr-defined]


def tab_bindings(tab: str) -> list[BindingType]:
    """The actions of the table that belong to a tab."""
    return bindings(lambda action: tab in action.tabs)
