"""The Live tab: kernels, curve, search tree, selected node and events, arranged for the size of the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from emmy_tui.action import LIVE
from emmy_tui.desk import Desk
from emmy_tui.dialogs import Reading
from emmy_tui.source import Again
from emmy_tui.steering import PATIENCE_STEP, Steering
from emmy_tui.tabs.tab import Tab, tab_bindings
from emmy_tui.view import View
from emmy_tui.why import why_lines
from emmy_tui.widgets.curve import Curve
from emmy_tui.widgets.event_log import EventLog
from emmy_tui.widgets.health import HealthPanel
from emmy_tui.widgets.kernel_list import KernelList, KernelOrder, order_of
from emmy_tui.widgets.kernel_name import kernel_name
from emmy_tui.widgets.panel import ListPanel, Panel
from emmy_tui.widgets.plan import PlanPanel
from emmy_tui.widgets.search_tree import SearchTree
from emmy_tui.widgets.selected import Selected

PANELS = ("kernels", "tree", "plan", "health", "log", "curve")
SHARED_BELOW, SELECTED_FROM, FRAMED_LOG_FROM = 80, 120, 30

_PANEL_VERSIONS = {
    "kernels": ("kernels", "run", "health"),
    "curve": ("curve", "kernels"),
    "tree": ("tree", "kernels"),
    "selected": ("tree", "log"),
    "plan": ("kernels", "run"),
    "health": ("health", "run"),
    "log": ("log",),
}


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Heights in lines, and which panels are seen. `top` is the row of kernels and curve."""

    top: int
    log: int
    framed_log: bool
    kernels: bool
    curve: bool
    selected: bool

    @classmethod
    def of(cls, width: int, height: int, flipped: bool) -> Arrangement:
        """For an inside of `width` x `height` cells; `flipped` shows the curve where one place is shared."""
        shared = width < SHARED_BELOW
        framed = height >= FRAMED_LOG_FROM
        log = max(7, height // 6) if framed else 3 if height >= 18 else 1
        top = min(18, max(5, round((height - log) * 0.42 if framed else (height - log) * 0.5)))
        return cls(top, log, framed, not (shared and flipped), not shared or flipped, width >= SELECTED_FROM)


class LiveTab(Tab):
    """Owns the panels; `update` brings them up to the snapshot, each only if what it shows has moved."""

    BINDINGS: ClassVar[list[BindingType]] = tab_bindings(LIVE)
    order = PANELS
    first = "kernels"

    def __init__(self, view: View, desk: Desk, steering: Steering) -> None:
        super().__init__(view, id=LIVE)
        self._desk = desk
        self._steering = steering
        self.kernel_panel = KernelList(view)
        self.curve = Curve(view)
        self.search_tree = SearchTree(view)
        self.selected_panel = Selected(view, id="selected")
        self.plan_panel = PlanPanel(view, desk)
        self.health_panel = HealthPanel(view)
        self.log_panel = EventLog(view)
        self.middle = "tree"
        self.flipped = False
        self._seen: dict[str, int] = {}

    def compose(self) -> ComposeResult:
        with Vertical():
            with Horizontal(id="top"):
                yield self.kernel_panel
                yield self.curve
            with Horizontal(id="middle"):
                yield self.search_tree
                yield self.plan_panel
                yield self.health_panel
                yield self.selected_panel
            yield self.log_panel

    @property
    def panels(self) -> dict[str, Panel]:
        return {
            "kernels": self.kernel_panel,
            "curve": self.curve,
            "tree": self.search_tree,
            "plan": self.plan_panel,
            "health": self.health_panel,
            "selected": self.selected_panel,
            "log": self.log_panel,
        }

    @property
    def shares_slot(self) -> bool:
        return self.size.width < SHARED_BELOW

    def place(self, width: int, height: int) -> None:
        plan = Arrangement.of(width, height, self.flipped)
        zoomed = self.zoomed
        shown = {
            "kernels": plan.kernels,
            "curve": plan.curve,
            "tree": self.middle == "tree",
            "plan": self.middle == "plan",
            "health": self.middle == "health",
            "selected": plan.selected and self.middle == "tree",
            "log": True,
        }
        for name, panel in self.panels.items():
            panel.display = name == zoomed if zoomed else shown[name]
        top, middle = self.query_one("#top"), self.query_one("#middle")
        top.display = zoomed in ("", "kernels", "curve")
        middle.display = zoomed in ("", "tree", "plan", "health")
        top.styles.height = "1fr" if zoomed else plan.top
        self.log_panel.framed = plan.framed_log or zoomed == "log"
        self.log_panel.styles.height = "1fr" if zoomed == "log" else plan.log
        self.call_after_refresh(self.repaint_all)

    def update(self, touched: set[str]) -> None:
        """Bring the panels up to the snapshot; repaint those whose versions moved."""
        versions = self.view.snapshot.versions
        moved = {name for name, version in versions.items() if self._seen.get(name) != version}
        self._seen = dict(versions)
        if touched or "tree" in moved:
            self.search_tree.update(touched)
        if "log" in moved:
            self.log_panel.update()
        if self.plan_panel.display:
            self.plan_panel.update()
        for name, panel in self.panels.items():
            if moved.intersection(_PANEL_VERSIONS[name]):
                panel.repaint()

    def reset(self) -> None:
        """The snapshot is another one: everything is seen for the first time, and followed."""
        self._seen = {}
        self.kernel_panel.following = self.search_tree.following = self.log_panel.following = True
        self.search_tree.update(set())
        self.log_panel.update()
        self.repaint_all()

    def choose_kernel(self) -> None:
        """The view shows another kernel."""
        self.kernel_panel.following = True
        self.search_tree.show_kernel()
        self.repaint_all()

    def action_follow(self) -> None:
        """Toggle following in the log if it has the focus, else in the tree."""
        panel = self.log_panel if self.focused_panel() == "log" else self.search_tree
        panel.follow(not panel.following)
        self.repaint_all()

    def action_flip(self) -> None:
        self.flipped = not self.flipped
        self.place_panels()
        self.call_after_refresh(self.focus_panel, "curve" if self.flipped else "kernels")

    def _show_middle(self, name: str) -> None:
        """Show a panel in the tree's place, or the tree again."""
        self.zoomed = "" if self.zoomed in ("tree", "plan", "health") else self.zoomed
        self.middle = "tree" if self.middle == name else name
        self.place_panels()
        if self.middle == "plan":
            self.plan_panel.update()
        self.call_after_refresh(self.focus_panel, self.middle)

    def action_plan(self) -> None:
        self._show_middle("plan")

    def action_health(self) -> None:
        self._show_middle("health")

    def action_close_middle(self) -> None:
        self._show_middle(self.middle)

    def action_kill_compile(self) -> None:
        one = self.health_panel.current()
        if one is not None:
            self._steering.kill_compile(one.number, one.kernel, one.schedule)

    def action_log_scale(self) -> None:
        self.view.log_scale = not self.view.log_scale
        self.curve.repaint()

    def action_time_axis(self) -> None:
        self.view.by_time = not self.view.by_time
        self.curve.repaint()

    def action_sort_kernels(self) -> None:
        orders = list(KernelOrder)
        panel = self.kernel_panel
        panel.order = orders[(orders.index(panel.order) + 1) % len(orders)]
        self._show_sorted()

    def action_reverse_kernels(self) -> None:
        self.kernel_panel.reversed = not self.kernel_panel.reversed
        self._show_sorted()

    def on_list_panel_heading(self, message: ListPanel.Heading) -> None:
        """A click on a heading of the kernels orders them by it; on the one that orders already, turns them round."""
        message.stop()
        order = order_of(message.word) if message.panel is self.kernel_panel else None
        if order is None:
            return
        if order is self.kernel_panel.order:
            self.kernel_panel.reversed = not self.kernel_panel.reversed
        else:
            self.kernel_panel.order = order
        self._show_sorted()

    def _show_sorted(self) -> None:
        """Whoever sorts wants to see what comes first: the cursor goes there, and the other panels with it. It stays on
        the kernel that a run is at, as long as nobody chose another: the panels follow the run on."""
        self.focus_panel("kernels")
        self.kernel_panel.following = True
        if self.view.busy and not self.view.chosen:
            self.kernel_panel.repaint()
        else:
            self.kernel_panel.move_to(0)

    def action_skip(self) -> None:
        self._steering.skip()

    def action_more_patience(self) -> None:
        self._steering.patience(PATIENCE_STEP)

    def action_less_patience(self) -> None:
        self._steering.patience(-PATIENCE_STEP)

    def action_select_kernel(self) -> None:
        row = self.kernel_panel.current()
        if row is not None:
            self.view.marked ^= {row.kernel}
            self.kernel_panel.repaint()

    def action_retune(self) -> None:
        """The marked kernels, else the one that is shown."""
        snapshot = self.view.snapshot
        rows = [row for row in self.kernel_panel.ordered() if row.kernel in self.view.marked]
        rows = rows or ([self.view.kernel] if self.view.kernel is not None else [])
        self._steering.retune(self.app, [Again(row.kernel, kernel_name(row, snapshot)) for row in rows])

    def action_acts(self) -> None:
        self._steering.list_acts(self.app)

    def action_why(self) -> None:
        self.app.push_screen(
            Reading(self.view, partial(why_lines, self.view, node_name=self.view.node), "Why", widest=100)
        )

    def on_list_panel_moved(self, message: ListPanel.Moved) -> None:
        message.stop()
        if message.panel is self.search_tree:
            self.selected_panel.repaint()
