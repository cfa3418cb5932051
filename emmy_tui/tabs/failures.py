"""The Failures tab: why candidates failed, by normalized cause, over the whole database."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from emmy_tui.action import FAILURES, Row
from emmy_tui.desk import Desk
from emmy_tui.dialogs import Reading
from emmy_tui.export import ask_format, cluster_record
from emmy_tui.forbidding import Corner, CornerChoice, Forbidding, ForbidQuestion, read_corner
from emmy_tui.knob_words import value_text
from emmy_tui.outlet import Outlet
from emmy_tui.tabs.tab import Tab, tab_bindings
from emmy_tui.variant_detail import DETAIL_WIDEST, Detail, detail_lines, read_detail
from emmy_tui.view import View
from emmy_tui.widgets.cluster_list import ClusterDetail, ClusterList
from emmy_tui.widgets.panel import ListPanel, Panel
from engine.store import (
    CandidateQuery,
    Compared,
    Condition,
    FailureCluster,
    ForbiddenCorner,
    Store,
    StoreError,
)
from engine.store.failures import FailedRow

FRESH_S = 5.0


class FailuresTab(Tab):
    """The clusters above, the one under the cursor below."""

    BINDINGS: ClassVar[list[BindingType]] = tab_bindings(FAILURES)
    order = ("clusters", "cluster")
    first = "clusters"

    def __init__(self, view: View, desk: Desk, outlet: Outlet) -> None:
        super().__init__(view, id=f"{FAILURES}-tab")
        self._desk = desk
        self._outlet = outlet
        self.list = ClusterList(view)
        self.detail = ClusterDetail(view)
        self._forbidding = Forbidding(desk, outlet, self._corners_found)
        self._corners: Sequence[ForbiddenCorner] = ()
        self._failed = -1
        self._asked_at = 0.0

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.list
            yield self.detail

    @property
    def panels(self) -> dict[str, Panel]:
        return {"clusters": self.list, "cluster": self.detail}

    @property
    def items(self) -> int:
        return self.list.count()

    @property
    def row(self) -> Row:
        cluster = self.list.current()
        return Row(shares=cluster is not None and bool(cluster.shared))

    @property
    def corners(self) -> int:
        """Forbidden corners in force."""
        return len(self._corners)

    @property
    def undoable(self) -> bool:
        return self._forbidding.undoable

    def place(self, width: int, height: int) -> None:
        for name, panel in self.panels.items():
            panel.display = self.zoomed in ("", name)
        self.list.styles.height = "1fr" if self.zoomed else max(5, height * 2 // 5)
        self.call_after_refresh(self.repaint_all)

    def shown(self) -> None:
        self.ask()
        self._forbidding.ask()

    def update(self, touched: set[str]) -> None:
        if self.view.snapshot.failed != self._failed and time.monotonic() - self._asked_at > FRESH_S:
            self.ask()

    def ask(self) -> None:
        self._failed, self._asked_at = self.view.snapshot.failed, time.monotonic()
        self.ask_for_rows(self._desk, lambda store: store.failures(), self._found, self._none)

    def _found(self, clusters: Sequence[FailureCluster]) -> None:
        self.list.show(clusters)
        self.detail.show(self.list.current())
        self.app.paint_frame()  # type: ignore[attr-defined]

    def _none(self, sentence: str) -> None:
        self.list.forget(sentence)
        self.detail.show(None)

    def on_list_panel_moved(self, message: ListPanel.Moved) -> None:
        message.stop()
        if message.panel is self.list:
            self.detail.show(self.list.current())
            self.app.paint_frame()  # type: ignore[attr-defined]

    def on_cluster_list_opened(self, message: ClusterList.Opened) -> None:
        message.stop()
        if self.zoomed:
            self.zoomed = "cluster"
            self.place_panels()
        self.detail.focus_rows()

    def action_close_cluster(self) -> None:
        if self.zoomed:
            self.zoomed = "clusters"
            self.place_panels()
        self.list.focus()

    def on_cluster_detail_row_opened(self, message: ClusterDetail.RowOpened) -> None:
        message.stop()
        self._desk.ask("detail", _read_failed(message.row), self._open, self._outlet.warn, opens=True)

    def _open(self, detail: Detail) -> None:
        lines = partial(detail_lines, detail, glyphs=self.view.glyphs)
        self.app.push_screen(Reading(self.view, lines, "Failed candidate", widest=DETAIL_WIDEST))

    def _corners_found(self, corners: Sequence[ForbiddenCorner]) -> None:
        self._corners = corners
        self.list.corners = corners
        self.list.repaint()
        self.app.paint_frame()  # type: ignore[attr-defined]

    def action_forbid(self) -> None:
        """Ask, with what the corner holds; then keep it."""
        cluster = self.list.current()
        if cluster is None or not cluster.shared:
            return

        def ask(corner: Corner) -> None:
            def answered(answer: str | None) -> None:
                if answer:
                    self._forbidding.forbid(corner, whole_families=answer == "families")

            self.app.push_screen(ForbidQuestion(self.view, corner), answered)

        self._desk.ask("corner", read_corner(cluster), ask, self._outlet.warn, opens=True)

    def action_undo_forbid(self) -> None:
        self._forbidding.undo()

    def action_list_corners(self) -> None:
        corners = list(self._corners)

        def answered(answer: str | None) -> None:
            chosen = next((one for one in corners if str(one.id) == answer), None)
            if chosen is not None:
                self._forbidding.allow(chosen)

        writable = self.app.now.writable  # type: ignore[attr-defined]
        self.app.push_screen(CornerChoice(self.view, corners, self._forbidding.names, writable=writable), answered)

    def action_export(self) -> None:
        records = [cluster_record(cluster) for cluster in self.list.clusters]
        ask_format(self.app, self.view, self._outlet, "failures", lambda then: then(records))


def _read_failed(failed: FailedRow) -> Callable[[Store], Detail]:
    """A failed row as a candidate, found by its knobs."""

    def question(store: Store) -> Detail:
        knobs = tuple(Condition(name, Compared.IS, value_text(value)) for name, value in failed.schedule.items())
        numbers = store.candidate_numbers(CandidateQuery(failed.kernel, conditions=knobs, sort="trial"))
        rows = store.candidate_rows(numbers)
        same = [row for row in rows.values() if row.schedule == failed.schedule]
        found = next((row for row in same if row.failure), None)
        if found is None:
            raise StoreError("this row isn't in the database; the list is older than the file")
        return read_detail(found)(store)

    return question
