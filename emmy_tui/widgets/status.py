"""The first two lines: what runs where, in which state, and what it has come to; then the tabs."""

from __future__ import annotations

from textual.events import Click
from textual.message import Message

from emmy_tui import format as fmt
from emmy_tui.action import TABS
from emmy_tui.known import RECORDED
from emmy_tui.run_state import WITHOUT_A_WORD
from emmy_tui.source import Mode
from emmy_tui.text import Glyphs, Line, Tone, clean, crop, line_width, width_of
from emmy_tui.view import View
from emmy_tui.widgets.panel import Panel, ends
from emmy_tui.widgets.totals import ended_early, expected_kernels, sum_text, total_line
from engine import __version__
from engine.events import KernelState, RunState

SHORT_BELOW = 120
_SHORT = {"live": "Live", "variants": "Var", "failures": "Fail", "pins": "Pins", "compare": "Cmp", "prior": "Pri"}

_STATE_TONES = {
    RunState.RUNNING: Tone.GOOD,
    RunState.FINISHED: Tone.GOOD,
    RunState.FAILED: Tone.BAD,
    RunState.PAUSED: Tone.BUSY,
    RunState.STOPPING: Tone.BUSY,
    RunState.STOPPED: Tone.BUSY,
}


def mode_span(view: View) -> Line:
    glyphs = view.glyphs
    if view.mode is None:
        return []
    if view.heard_s is not None:
        return [(f"{glyphs.live} FOLLOWING", Tone.ACCENT)]
    live = view.mode is not Mode.BROWSE
    return [(f"{glyphs.live if live else glyphs.still} {view.mode}", Tone.ACCENT)]


def state_spans(view: View) -> Line:
    """The run's state in words, with what a person asked of the view and the engine."""
    if view.mode is None:
        return []
    state = view.state
    word = state.upper() if state in (RunState.PAUSED, RunState.FAILED) else str(state)
    if view.stop_asked_at is not None and view.busy:
        word = f"stopping {max(0, int(view.now - view.stop_asked_at))}s, {view.key('interrupt')} exits now"
    spans: Line = [(word, _STATE_TONES.get(RunState(state), Tone.PLAIN))]
    if view.lost:
        spans = [(WITHOUT_A_WORD, Tone.BUSY)]
    if view.reading:
        spans = [("reading the database", Tone.BUSY)]
    if view.heard_s is not None:
        spans.append((f"  last row {view.heard_s:.0f} s ago", Tone.DIM))
    if view.frozen:
        spans.append((f"  FROZEN +{fmt.count(view.held)}", Tone.BUSY))
    if view.read_only or view.unwritable:
        spans.append(("  RO", Tone.DIM))
    spans += [(f"  {badge}", Tone.BUSY) for badge in view.badges]
    return spans


def device_text(view: View, room: int) -> str:
    """The GPU, and the device's name where both fit; a replay has no device of its own."""
    run = view.snapshot.run
    if run is None:
        return ""
    gpu, device = clean(run.gpu, view.glyphs), clean(run.device, view.glyphs)
    both = f"{gpu} {device}"
    return both if view.mode is not Mode.REPLAY and width_of(both) <= room else crop(gpu, room, view.glyphs)


def status_line(view: View, width: int) -> Line:
    """One line of at most `width` cells; what matters least is left out first, and the target is cropped."""
    snapshot, glyphs = view.snapshot, view.glyphs
    gap: Line = [("  ", Tone.PLAIN)]
    name: Line = [(f"emmy-tui {__version__}" if width >= 100 else "emmy-tui", Tone.HEAD)]
    elapsed = view.elapsed_s
    done = sum(row.state in (KernelState.DONE, KernelState.FAILED, RECORDED) for row in snapshot.kernels.values())
    ends_with: list[Line] = []
    if view.lost and not int(elapsed or 0):
        elapsed = None  # it said too little to tell
    if view.reading:
        elapsed = None  # counts, sum and time of a part would be false
    elif snapshot.kernels:
        so_far = "so far " if ended_early(view) else ""
        ends_with.append([(f"{so_far}{done}/{expected_kernels(view)} kernels", Tone.PLAIN)])
        ends_with.append([(sum_text(view), Tone.PLAIN)])
    if elapsed is not None:
        ends_with.append([(fmt.duration(elapsed), Tone.PLAIN)])
    start: Line = [*name, ("  ", Tone.PLAIN), *mode_span(view), ("  ", Tone.PLAIN), *state_spans(view)]
    tail: Line = []
    for part in ends_with:
        if line_width(start) + line_width(tail) + line_width(part) + 4 <= width:
            tail += [*gap, *part]
    room = width - line_width(start) - line_width(tail) - 4
    device = device_text(view, room)
    if device and room >= 8:
        start += [*gap, (device, Tone.PLAIN)]
    room = width - line_width(start) - line_width(tail) - 4
    target = clean(_target(view), glyphs)
    if target and room >= 8:
        start += [*gap, (crop(target, room, glyphs), Tone.DIM)]
    return ends(start, tail, width, view)


def _target(view: View) -> str:
    run = view.snapshot.run
    return (run.target if run else "") or view.title


class StatusLine(Panel):
    """The header."""

    framed = False

    def lines(self, width: int, height: int) -> list[Line]:
        return [status_line(self.view, width)]


class TabBar(Panel):
    """The tabs, and at their right the totals, so that they are seen at any width."""

    framed = False

    class Pressed(Message):
        """A person clicked on the name of a tab."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def _names(self, width: int) -> Line:
        short = width < SHORT_BELOW
        return [_tab(number, name, self.view.tab == name, short) for number, name in enumerate(TABS, 1)]

    def on_click(self, event: Click) -> None:
        end = 0
        for name, (text, _) in zip(TABS, self._names(self.size.width), strict=True):
            end += width_of(text)
            if event.x < end:
                self.post_message(self.Pressed(f"tab_{name}"))
                return

    def lines(self, width: int, height: int) -> list[Line]:
        start = self._names(width)
        if self.view.mode is None:
            return [start]
        room = width - line_width(start) - 3
        right_side = _database(self.view.database, room, self.view.glyphs)
        shows_totals = self.view.snapshot.kernels and not self.view.reading
        totals = total_line(self.view, max(0, room)) if shows_totals else right_side
        return [ends(start, totals, width, self.view)]


def _tab(number: int, name: str, front: bool, short: bool) -> tuple[str, Tone]:
    """A tab's key and name. Where there is little room, the names of the tabs behind are short."""
    if front:
        return f" [{number} {name.capitalize()}]", Tone.HEAD
    return (f" {number}{_SHORT[name]}" if short else f"  {number} {name.capitalize()} "), Tone.DIM


def _database(path: str, room: int, glyphs: Glyphs) -> Line:
    """The end of a path tells more than its beginning."""
    text = clean(path, glyphs)
    return [(text if len(text) <= room else glyphs.ellipsis + text[-max(1, room - 1) :], Tone.DIM)] if text else []
