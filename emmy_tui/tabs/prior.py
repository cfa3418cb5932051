"""The Prior tab: what steers the search, how well it ranks what was measured, and where it is most wrong."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from emmy_tui.action import PRIOR
from emmy_tui.desk import Desk
from emmy_tui.dialogs import Reading
from emmy_tui.export import Record, ask_format
from emmy_tui.outlet import Outlet
from emmy_tui.sharing import LEAST, Box, shared
from emmy_tui.tabs.tab import Tab, tab_bindings
from emmy_tui.view import View
from emmy_tui.widgets.panel import ListPanel, Panel
from emmy_tui.widgets.prior_panels import Importance, ResidualList, Scatter, Trust, TrustList, trained_lines
from engine.store import Store

if TYPE_CHECKING:
    from emmy_tui.prior_reading import PriorReading
    from engine.deploy import PriorReport
    from engine.deploy.prior_report import KernelTrust

TRUST_LINES, PLOT_LINES = 5, 7
BOTH_LISTS_FROM = 120


class _Asked:
    """One question for the report, that is put again until its reading is over."""

    def __init__(self) -> None:
        self._reading: PriorReading | None = None

    def __call__(self, store: Store) -> PriorReport | None:
        from emmy_tui.prior_reading import PriorReading

        if self._reading is None:
            self._reading = PriorReading()
        return self._reading.go_on(store)


class PriorTab(Tab):
    """The verdict above, scatter and importance in the middle, kernels and residuals below."""

    BINDINGS: ClassVar[list[BindingType]] = tab_bindings(PRIOR)
    order = ("ranked", "residuals", "scatter")
    first = "ranked"

    def __init__(self, view: View, desk: Desk, outlet: Outlet) -> None:
        super().__init__(view, id=f"{PRIOR}-tab")
        self._desk = desk
        self._outlet = outlet
        self.trust = Trust(view, id="trust")
        self.scatter = Scatter(view)
        self.importance = Importance(view, id="importance")
        self.ranked = TrustList(view)
        self.residuals = ResidualList(view)
        self.flipped = False
        self._opened = "ranked"
        """The panel that the tab key led to: where there is little room, it is the one that is seen."""
        self._report: PriorReport | None = None
        self._asked = _Asked()

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.trust
            with Horizontal(id="prior-middle"):
                yield self.scatter
                yield self.importance
            with Horizontal(id="prior-lists"):
                yield self.ranked
                yield self.residuals

    @property
    def panels(self) -> dict[str, Panel]:
        return {
            "ranked": self.ranked,
            "residuals": self.residuals,
            "scatter": self.scatter,
            "trust": self.trust,
            "importance": self.importance,
        }

    @property
    def items(self) -> int:
        return self.ranked.count()

    @property
    def trained(self) -> bool:
        """Whether it is known what the prior was fitted to."""
        return self._report is not None

    @property
    def shares_slot(self) -> bool:
        return self.size.width < BOTH_LISTS_FROM

    def place(self, width: int, height: int) -> None:
        shared, zoomed = width < BOTH_LISTS_FROM, self.zoomed
        shown = {
            "trust": True,
            "scatter": True,
            "importance": True,
            "ranked": not (shared and self.flipped),
            "residuals": not shared or self.flipped,
        }
        for name, panel in self.panels.items():
            panel.display = name == zoomed if zoomed else shown[name]
        heights = {} if zoomed else self._heights(height)
        middle, lists = self.query_one("#prior-middle"), self.query_one("#prior-lists")
        middle.display = zoomed == "scatter" or "middle" in heights
        lists.display = zoomed in ("ranked", "residuals") or "lists" in heights
        self.trust.display = zoomed == "trust" or "trust" in heights
        self.trust.styles.height = TRUST_LINES
        lists.styles.height = heights["lists"] if middle.display and "lists" in heights else "1fr"
        for name, box in (("scatter", middle), ("importance", middle), ("ranked", lists), ("residuals", lists)):
            self.panels[name].display &= box.display
        self.name_left_out()
        self.call_after_refresh(self.repaint_all)

    def _heights(self, height: int) -> dict[str, int]:
        """Lines of the verdict, the middle and the lists. Where there is no room for all, the one with the focus."""
        lists = max(LEAST, (height - TRUST_LINES) * 2 // 5)
        boxes = [Box("trust", TRUST_LINES, TRUST_LINES), Box("lists", lists, lists), Box("middle", PLOT_LINES, height)]
        if self._opened == "scatter":
            boxes = [boxes[0], boxes[2], boxes[1]]
        return shared(boxes[1:2] if height < TRUST_LINES + LEAST else boxes, height)

    def reachable(self) -> list[str]:
        if self.zoomed:
            return [self.zoomed]
        flipped = self.shares_slot and self.flipped
        hidden = ("ranked" if flipped else "residuals") if self.shares_slot else ""
        return [name for name in self.order if name != hidden]

    def open_panel(self, name: str) -> None:
        self._opened = name
        self.place_panels()

    def shown(self) -> None:
        self.ask()

    def reset(self) -> None:
        self.scatter.kernel = ""

    def ask(self) -> None:
        self._asked = _Asked()
        self._go_on(self._asked)

    def _go_on(self, asked: _Asked) -> None:
        """Put a question, or put it again behind what was asked since: a long reading holds up no other one."""

        def found(report: PriorReport | None) -> None:
            if report is not None:
                self._show(report, "")
            elif asked is self._asked:
                self._go_on(asked)

        self.ask_for_rows(self._desk, asked, found, self._none)

    def _none(self, sentence: str) -> None:
        self._show(None, sentence)

    def _show(self, report: PriorReport | None, said: str) -> None:
        self._report = report
        for told in (self.trust, self.scatter, self.importance):
            told.show(report, said)
        self.ranked.show(report, said)
        self.residuals.show(report)
        self.app.paint_frame()  # type: ignore[attr-defined]

    def on_list_panel_moved(self, message: ListPanel.Moved) -> None:
        message.stop()

    def on_trust_list_chosen(self, message: TrustList.Chosen) -> None:
        """Show this kernel's candidates alone, or all again."""
        message.stop()
        one = message.kernel
        self.scatter.kernel = "" if self.scatter.kernel == one.kernel else one.kernel
        self.scatter.label = f"{one.label or one.family} {one.shape}"
        self.scatter.repaint()

    def action_flip_prior(self) -> None:
        self.flipped = not self.flipped
        self._opened = "residuals" if self.flipped else "ranked"
        self.place_panels()
        self.call_after_refresh(self.focus_panel, self._opened)

    def action_trained(self) -> None:
        if self._report is not None:
            lines = partial(trained_lines, self._report, glyphs=self.view.glyphs)
            self.app.push_screen(Reading(self.view, lines, "Trained on"))

    def action_export(self) -> None:
        records = [trust_record(one) for one in self.ranked.kernels]
        ask_format(self.app, self.view, self._outlet, "prior", lambda then: then(records))


def trust_record(one: KernelTrust) -> Record:
    """How one kernel is ranked, as an object."""
    return {
        "kernel": one.kernel,
        "label": one.label,
        "family": one.family,
        "shape": one.shape,
        "gpu": one.gpu,
        "rows": one.rows,
        "measured": one.measured,
        "spearman": one.learned.spearman,
        "cold_spearman": one.cold.spearman if one.cold else None,
        "winner_rank": one.learned.winner_rank,
        "regret_1": one.learned.regrets[0],
        "regret_10": one.learned.regrets[1],
    }
