"""The Pins tab: what a person chose, how it stands, and how to choose something that was never measured."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from emmy_tui.action import PINS
from emmy_tui.desk import Desk
from emmy_tui.knob_words import long_words
from emmy_tui.outlet import Outlet
from emmy_tui.pin_file import import_pins, pins_text
from emmy_tui.pinning import Pinnable, Pinning, author, read_pinnable, read_typed
from emmy_tui.prompt import Prompt
from emmy_tui.source import Again
from emmy_tui.steering import Steering
from emmy_tui.tabs.tab import Tab, tab_bindings
from emmy_tui.view import View
from emmy_tui.widgets.panel import ListPanel, Panel
from emmy_tui.widgets.pin_list import PinDetail, PinList
from engine.deploy import Received
from engine.store import PinStanding, Standing

DETAIL_LINES = 10


class PinsTab(Tab):
    """The pins above, the one under the cursor below."""

    BINDINGS: ClassVar[list[BindingType]] = tab_bindings(PINS)
    order = ("pins",)
    first = "pins"

    def __init__(self, view: View, desk: Desk, outlet: Outlet, pinning: Pinning, steering: Steering) -> None:
        super().__init__(view, id=f"{PINS}-tab")
        self._desk = desk
        self._outlet = outlet
        self._pinning = pinning
        self._steering = steering
        self.list = PinList(view)
        self.detail = PinDetail(view, self.list)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.list
            yield self.detail

    @property
    def panels(self) -> dict[str, Panel]:
        return {"pins": self.list, "pin": self.detail}

    @property
    def items(self) -> int:
        return self.list.count()

    def place(self, width: int, height: int) -> None:
        self.detail.display = not self.zoomed
        self.detail.styles.height = min(DETAIL_LINES, height // 2)
        self.call_after_refresh(self.repaint_all)

    def shown(self) -> None:
        self.ask()

    def ask(self) -> None:
        self._desk.ask("pins", lambda store: store.pin_standings(), self._found, self.list.forget)

    def _found(self, pins: tuple[PinStanding, ...]) -> None:
        self.list.show(pins)
        self.detail.repaint()
        self.app.paint_frame()  # type: ignore[attr-defined]

    def on_list_panel_moved(self, message: ListPanel.Moved) -> None:
        message.stop()
        self.detail.repaint()

    def action_pin(self) -> None:
        """Type knob values for the kernel that the Live and Variants tabs show."""
        kernel = self.view.kernel
        if kernel is not None:
            self._desk.ask("pinnable", read_pinnable(kernel.kernel), self._type, self._outlet.warn)

    def _type(self, pinnable: Pinnable) -> None:
        kernel = pinnable.kernel

        def typed(text: str | None) -> None:
            if text is not None:
                schedule, note = read_typed(text)
                self._pinning.pin(kernel.label or kernel.family, kernel.key, pinnable.context_key, schedule, note)

        best = long_words(pinnable.best.as_dict()) + " " if pinnable.best else ""
        label = f"Pin knobs of {kernel.label or kernel.family} {kernel.shape_text}"
        hint = "legal; enter pins it; # begins a note; [ and ] choose another kernel before"
        self.app.push_screen(Prompt(self.view, label, text=best, hint=hint, judge=pinnable.judge), typed)

    def action_unpin(self) -> None:
        one = self.list.current()
        if one is not None:
            self._pinning.unpin(one.label, one.stored.pin.kernel_key, one.stored.context_key)

    def action_undo_pin(self) -> None:
        self._pinning.undo()

    def action_retune(self) -> None:
        one = self.list.current()
        if one is not None:
            self._steering.retune(self.app, [Again(one.stored.pin.kernel_key, one.label)])

    def action_retune_stale(self) -> None:
        """Every kernel whose pin was overtaken or belongs to other versions; an unmeasured pin is measured."""
        stale = [one for one in self.list.pins if one.standing is not Standing.OK]
        if not stale:
            self._outlet.say("no pin is stale")
        self._steering.retune(self.app, [_again(one) for one in stale])

    def action_measure(self) -> None:
        one = self.list.current()
        if one is not None:
            again = Again(one.stored.pin.kernel_key, one.label, one.stored.pin.schedule)
            self._steering.retune(self.app, [again])

    def action_acts(self) -> None:
        self._steering.list_acts(self.app)

    def action_copy_knobs(self) -> None:
        one = self.list.current()
        if one is not None:
            self._outlet.copy(long_words(one.stored.pin.schedule.as_dict()), "knobs")

    def action_export(self) -> None:
        self._desk.ask("export", pins_text, lambda text: self._outlet.write("pins", {"json": text}), self._outlet.warn)

    def action_import_pins(self) -> None:
        def named(text: str | None) -> None:
            if text and text.strip():
                path = Path(text.strip()).expanduser()
                self._desk.write(import_pins(path, author()), self._imported, self._outlet.warn)

        hint = "a JSON file that e wrote on this tab; enter pins what fits, esc leaves"
        self.app.push_screen(Prompt(self.view, "Import pins from the file", hint=hint), named)

    def _imported(self, imported: Received) -> None:
        text = f"{len(imported.pins)} pinned"
        if imported.suggestions:
            text += f", {imported.suggestions} suggestions from elsewhere"
        if imported.left_out:
            text += f", {len(imported.left_out)} left out: {'; '.join(dict.fromkeys(imported.left_out))}"
        (self._outlet.warn if imported.left_out else self._outlet.say)(text)
        self._pinning.did_many("an imported pin", list(imported.pins))


def _again(one: PinStanding) -> Again:
    pin = one.stored.pin
    measured = one.standing is not Standing.UNMEASURED
    return Again(pin.kernel_key, one.label, None if measured else pin.schedule)
