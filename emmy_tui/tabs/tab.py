"""What the tabs share: a box of panels with a zoom, a focus that goes round, and the actions that are theirs alone."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Container

from emmy_tui.actions import BY_NAME, bindings
from emmy_tui.view import View
from emmy_tui.widgets.panel import Panel

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

    @property
    def panels(self) -> dict[str, Panel]:
        raise NotImplementedError

    @property
    def items(self) -> int:
        """Rows of the tab's list."""
        return 0

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

    def place(self, width: int, height: int) -> None:
        """Give the panels their places; the zoomed one is alone."""
        raise NotImplementedError

    def update(self, touched: set[str]) -> None:
        """Take in what the snapshot has new. `touched` are the tree nodes that changed."""

    def reset(self) -> None:
        """The snapshot is another one."""

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
        names = [name for name in self.order if self.panels[name].display]
        focused = self.focused_panel()
        if names:
            place = names.index(focused) + step if focused in names else 0
            self.focus_panel(names[place % len(names)])

    def zoom(self) -> None:
        self.zoomed = "" if self.zoomed else self.focused_panel()
        self.place_panels()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        known = BY_NAME.get(action)
        return known.when(self.app.now) if known is not None and known.tabs else True  # type: ignore[attr-defined]


def tab_bindings(tab: str) -> list[BindingType]:
    """The actions of the table that belong to a tab."""
    return bindings(lambda action: tab in action.tabs)
