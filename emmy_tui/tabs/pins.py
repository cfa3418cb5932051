"""The Pins tab: what a person chose, what came from elsewhere, and what each kernel would run as now.

The three answer one question, what will be built: pins decide, suggestions don't, and the last list says what comes of
all evidence. In a low terminal the focused list has the room, and what can't be said in what is left is left out; the
tab key leads to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import DescendantFocus

from emmy_tui.action import PINS, Row
from emmy_tui.deploying import Deploying, Deploys
from emmy_tui.desk import Desk
from emmy_tui.dialogs import Reading
from emmy_tui.knob_words import long_words
from emmy_tui.outlet import Outlet
from emmy_tui.pin_file import import_pins, pins_text
from emmy_tui.pin_watch import PinWatch
from emmy_tui.pinning import Pinnable, Pinning, author, read_pinnable
from emmy_tui.prompt import Prompt, ask_file
from emmy_tui.sharing import FRAME, LEAST, Box, shared
from emmy_tui.source import Again
from emmy_tui.steering import Steering
from emmy_tui.tabs.tab import Tab, tab_bindings
from emmy_tui.text import Line
from emmy_tui.view import View
from emmy_tui.widgets.deploy_list import DeployList, deploy_detail
from emmy_tui.widgets.kernel_name import known_name
from emmy_tui.widgets.panel import ListPanel, Panel, titled
from emmy_tui.widgets.pin_list import PinList, pin_detail
from emmy_tui.widgets.suggestion_list import Suggested, SuggestionList, read_suggestions, suggestion_detail
from engine.deploy import Received, pin_standings
from engine.store import PinStanding, Store
from engine.vocabulary import Schedule

DETAIL_LINES, LOW_DETAIL_LINES = 10, 8
STACKED_FROM = 30
"""Lines of the tab from which all lists are seen, each as high as it is long."""
OVERHEAD = FRAME + 1


@dataclass(frozen=True, slots=True)
class Here:
    """What is under the cursor, whichever list it is in."""

    kernel: str
    label: str
    context: str = ""
    schedule: Schedule | None = None


_Listed = tuple[tuple[PinStanding, ...], tuple[Suggested, ...]]


class RowDetail(Panel):
    """The row under the cursor of the list that was focused last, in full; `ask` tells its title and lines."""

    def __init__(self, view: View, ask: Callable[[int], tuple[str, list[Line]]], *, id: str = "pin") -> None:
        super().__init__(view, id=id)
        self._ask = ask

    def title(self) -> Line:
        return titled(self._ask(self.size.width)[0])

    def lines(self, width: int, height: int) -> list[Line]:
        return self._ask(width)[1]


class PinsTab(Tab):
    """The lists above, the row under the cursor below."""

    BINDINGS: ClassVar[list[BindingType]] = tab_bindings(PINS)
    order = ("pins", "suggestions", "deploys")
    first = "pins"

    def __init__(self, view: View, desk: Desk, outlet: Outlet, pinning: Pinning, steering: Steering) -> None:
        super().__init__(view, id=f"{PINS}-tab")
        self._desk = desk
        self._outlet = outlet
        self._pinning = pinning
        self._steering = steering
        self.list = PinList(view)
        self.suggestions = SuggestionList(view)
        self.deploys = DeployList(view)
        self.detail = RowDetail(view, self._detail)
        self._last = "pins"
        self._deploying = Deploying(view, desk, self._read_some)
        self._pin_watch = PinWatch(desk, "changes", _read_listed, self._pins_seen)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.list
            yield self.suggestions
            yield self.deploys
            yield self.detail

    @property
    def panels(self) -> dict[str, Panel]:
        return {**self._lists, "pin": self.detail}

    @property
    def _lists(self) -> dict[str, ListPanel]:
        return {"pins": self.list, "suggestions": self.suggestions, "deploys": self.deploys}

    @property
    def items(self) -> int:
        return self._lists[self._last].count()

    @property
    def row(self) -> Row:
        here, pins = self.here(), self.list.pins
        return Row(
            known_name(here.kernel, here.label, self.view.snapshot) if here is not None else "",
            pinned=here is not None and self._pin_of(here) is not None,
            schedule=here is not None and here.schedule is not None,
            pins=bool(pins),
            stale=any(one.stale for one in pins),
        )

    def place(self, width: int, height: int) -> None:
        heights = {self.zoomed: height} if self.zoomed else self._heights(height)
        for name, panel in self.panels.items():
            panel.display = name in heights
            panel.styles.height = heights.get(name, 0)
        self.name_left_out()
        self.call_after_refresh(self.repaint_all)

    def _heights(self, height: int) -> dict[str, int]:
        """Lines of the boxes that are seen. The list with the focus comes first, or where it is empty the kernels."""
        stacked = height >= STACKED_FROM
        opened = "deploys" if stacked or not self._lists[self._last].count() else self._last
        names = [opened, *(name for name in ("deploys", "pins", "suggestions") if name != opened)]
        boxes = []
        for name in names:
            count = self._lists[name].count()
            wanted = max(1 if count else 2, count) + OVERHEAD
            least = min(wanted, height // 4 if stacked and name != opened else LEAST)
            if name != "suggestions" or count:
                boxes.append(Box(name, least, least if stacked and name != opened else wanted))
        lines = DETAIL_LINES if stacked else LOW_DETAIL_LINES
        boxes.insert(1 if height >= lines + 2 * LEAST else len(boxes), Box("pin", lines, lines))
        return shared(boxes, height)

    def reachable(self) -> list[str]:
        """All lists that hold something or say that they don't, also where they are left out for want of room."""
        if self.zoomed:
            return [self.zoomed]
        return [name for name in self.order if name != "suggestions" or self.suggestions.count()]

    def open_panel(self, name: str) -> None:
        if name not in self._heights(self.size.height):
            self._last = name
            self.place_panels()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        name = self.focused_panel()
        if name in self.order and name != self._last:
            self._last = name
            self._deploying.explain(self._explained)
            self.place_panels()

    def shown(self) -> None:
        self.ask()

    def update(self, touched: set[str]) -> None:
        """A run finds more kernels; they are asked for once the ones before have answered."""
        done = len(self.deploys.found) >= self.deploys.wanted
        if done and len(self.view.snapshot.kernels) > self.deploys.wanted:
            self.ask()
        self._pin_watch.look()

    def _pins_seen(self, before: _Listed | None, now: _Listed) -> None:
        if before is None:
            return
        pins, suggestions = now
        if [one.stored for one in pins] != [one.stored for one in self.list.pins]:
            self.ask()
        elif pins != tuple(self.list.pins) or suggestions != self.suggestions.found:
            self._found(pins)
            self._suggested(suggestions)

    def reset(self) -> None:
        self._deploying.reset()
        self._list_deploys()

    def ask(self) -> None:
        self._desk.ask("pins", pin_standings, self._found, self.list.forget, again=True)
        self._desk.ask("suggestions", read_suggestions(), self._suggested, lambda sentence: None)
        self._deploying.ask()
        self._list_deploys()

    def _list_deploys(self) -> None:
        """What is known of each kernel, in the order of the run."""
        found = self._deploying.found
        self.deploys.wanted, self.deploys.said = self._deploying.wanted, self._deploying.said
        self.deploys.found = [found[key] for key in self.view.snapshot.kernels if key in found]

    def _read_some(self) -> None:
        self._list_deploys()
        self._changed()

    def _found(self, pins: tuple[PinStanding, ...]) -> None:
        self._deploying.ask_first({key for key, _ in _places(self.list.pins) ^ _places(pins)})
        self.list.show(pins)
        self._changed()

    def _suggested(self, found: tuple[Suggested, ...]) -> None:
        self.suggestions.found = found
        self._changed()

    def _changed(self) -> None:
        self._deploying.explain(self._explained)
        self.place_panels()
        self.repaint_all()
        self.app.paint_frame()  # type: ignore[attr-defined]

    def on_list_panel_moved(self, message: ListPanel.Moved) -> None:
        message.stop()
        self._deploying.explain(self._explained)
        self.detail.repaint()
        self.app.paint_frame()  # type: ignore[attr-defined]

    @property
    def _explained(self) -> Deploys | None:
        """The kernel that the panel below tells of, where it tells of no pin and no suggestion."""
        if self._last == "suggestions" and self.suggestions.current() is not None:
            return None
        return self.deploys.current() if self._last == "deploys" or self.list.current() is None else None

    def _detail(self, width: int) -> tuple[str, list[Line]]:
        """Title and lines of the row under the cursor."""
        glyphs = self.view.glyphs
        pin, suggested, explained = self.list.current(), self.suggestions.current(), self._explained
        if self._last == "suggestions" and suggested is not None:
            return "Suggestion", suggestion_detail(suggested, width, glyphs, self.view.key)
        if explained is not None:
            return "What decides", deploy_detail(explained, width, glyphs)
        return "Pin", pin_detail(pin, width, glyphs) if pin is not None else []

    def here(self) -> Here | None:
        """The row under the cursor of the list that was focused last."""
        pin, suggested, deploys = self.list.current(), self.suggestions.current(), self.deploys.current()
        if self._last == "pins" and pin is not None:
            return Here(pin.stored.pin.kernel_key, pin.label, pin.stored.context_key, pin.stored.pin.schedule)
        if self._last == "suggestions" and suggested is not None:
            return Here(suggested.one.kernel_key, suggested.label, schedule=suggested.one.schedule)
        if self._last == "deploys" and deploys is not None:
            return Here(deploys.kernel, deploys.label, deploys.context_key, deploys.schedule)
        return None

    def on_list_panel_entered(self, message: ListPanel.Entered) -> None:
        """Enter: the row in full, where the panel below may be too low for it."""
        message.stop()
        title, lines = self._detail(self.size.width)
        if lines:
            self.app.push_screen(Reading(self.view, lambda width: self._detail(width)[1], title, widest=120))

    def action_pin(self) -> None:
        """Type knob values: of the row under the cursor, else of the kernel that the Live and Variants tabs show."""
        here, kernel = self.here(), self.view.kernel
        offered = here.schedule if here is not None and self._last != "pins" else None
        key = here.kernel if here is not None and offered is not None else kernel.kernel if kernel else ""
        if key:

            def type_it(pinnable: Pinnable) -> None:
                self._type(pinnable, offered)

            self._desk.ask("pinnable", read_pinnable(key), type_it, self._outlet.warn, opens=True, typed=True)

    def _type(self, pinnable: Pinnable, offered: Schedule | None) -> None:
        kernel = pinnable.kernel

        def typed(text: str | None) -> None:
            if text is not None:
                self._pinning.pin_typed(pinnable, text)

        begin = offered or pinnable.best
        text = long_words(begin.as_dict()) + " " if begin else ""
        label = f"Pin knobs of {kernel.label or kernel.family} {kernel.shape_text}"

        def judge(typed: str) -> str:
            said = pinnable.judge(typed)
            return f"{said} (ctrl+u empties the line)" if said and text and typed.startswith(text) else said

        hint = "legal; enter pins it; ctrl+u empties the line: knobs left away are the best one's; # begins a note"
        hint += f"; {self.view.key('previous_kernel')} and {self.view.key('next_kernel')}: another kernel"
        self.app.push_screen(Prompt(self.view, label, text=text, hint=hint, judge=judge), typed)

    def action_unpin(self) -> None:
        here = self.here()
        pin = self._pin_of(here) if here is not None else None
        if pin is not None:
            self._pinning.unpin(pin.label, pin.stored.pin.kernel_key, pin.stored.context_key)

    def _pin_of(self, here: Here) -> PinStanding | None:
        """The pin of the row's kernel, in the row's context where it has one."""
        own = [one for one in self.list.pins if one.stored.pin.kernel_key == here.kernel]
        return next((one for one in own if here.context in ("", one.stored.context_key)), None)

    def action_undo_pin(self) -> None:
        self._pinning.undo()

    def action_retune(self) -> None:
        here = self.here()
        if here is not None:
            self._steering.retune(self.app, [Again(here.kernel, here.label)])

    def action_retune_stale(self) -> None:
        """Every kernel whose pin was overtaken or belongs to other versions."""
        stale = [one for one in self.list.pins if one.stale]
        self._steering.retune(self.app, [Again(one.stored.pin.kernel_key, one.label) for one in stale])

    def action_measure(self) -> None:
        here = self.here()
        if here is not None and here.schedule is not None:
            self._steering.retune(self.app, [Again(here.kernel, here.label, here.schedule)])

    def action_acts(self) -> None:
        self._steering.list_acts(self.app)

    def action_copy_knobs(self) -> None:
        here = self.here()
        if here is not None and here.schedule is not None:
            self._outlet.copy(long_words(here.schedule.as_dict()), "knobs")

    def action_export(self) -> None:
        def write(text: str) -> None:
            self._outlet.write("pins", {"json": text})

        self._outlet.expect("the export of the pins")
        self._desk.ask("export", pins_text, write, self._outlet.refuse)

    def action_import_pins(self) -> None:
        def named(path: Path | None) -> None:
            if path is not None:
                what = f"the pins of {path.name}"
                self._desk.write(import_pins(path, author()), self._imported, self._outlet.warn, what=what)

        wrote = self.view.key("export")
        hint = f"a JSON file that {wrote} wrote on this tab; enter pins what fits, esc leaves"
        ask_file(self.app, self.view, "Import pins from the file", named, self._outlet.warn, hint=hint)

    def _imported(self, imported: Received) -> None:
        text = f"{len(imported.pins)} pinned"
        if imported.in_force:
            text += f", {imported.in_force} {'was' if imported.in_force == 1 else 'were'} in force already"
        elif not imported.pins and not imported.suggestions and not imported.left_out:
            text = "nothing is pinned: the file holds no pin"
        if imported.suggestions:
            text += f", {imported.suggestions} suggestions from elsewhere"
        if imported.left_out:
            text += f", {len(imported.left_out)} left out: {'; '.join(dict.fromkeys(imported.left_out))}"
        (self._outlet.warn if imported.left_out else self._outlet.say)(text)
        self._pinning.did_many("an imported pin", list(imported.pins))


def _read_listed(store: Store) -> _Listed:
    return pin_standings(store), read_suggestions()(store)


def _places(pins: Sequence[PinStanding]) -> set[tuple[str, int]]:
    """Kernel and number of each pin: a pin that is set again has another number."""
    return {(one.stored.pin.kernel_key, one.stored.id) for one in pins}
