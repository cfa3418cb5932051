"""What happened, newest at the bottom: measurements, new bests, failures with their cause, and changes of state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from emmy_tui import format as fmt
from emmy_tui.source import Mode
from emmy_tui.text import Glyphs, Line, Tone, clean, left
from emmy_tui.view import View
from emmy_tui.widgets.kernel_name import kernel_name
from emmy_tui.widgets.panel import ListPanel, titled
from emmy_tui.widgets.totals import kernels_alone, program_sum_us
from engine.events import (
    Acted,
    Assembled,
    ComparedInPlace,
    Event,
    GroupingScored,
    GroupingsExplored,
    KernelFinished,
    Logged,
    Measured,
    PriorRefit,
    Respawned,
    RunFinished,
    StateChanged,
)
from engine.knobs import KNOB_ORDER
from engine.snapshot import Snapshot
from engine.vocabulary import Schedule, Status

HIT = "hit"


@dataclass(slots=True)
class Entry:
    """One line of the log: an event, or `count` cached hits of one kernel in a row, of which `event` is the last."""

    event: Event
    count: int = 1


def entries(log: Sequence[Event], *, replay: bool = False) -> list[Entry]:
    """The lines of the log. Cached hits in a row become one line, since a re-run serves hundreds at once.

    In a replay the database is the device: nothing but hits comes, each of them worth its line.
    """
    lines: list[Entry] = []
    _add(lines, log, replay)
    return lines


def _add(lines: list[Entry], events: Iterable[Event], replay: bool) -> None:
    for event in events:
        if (
            not replay
            and lines
            and _quiet_hit(event)
            and _quiet_hit(lines[-1].event)
            and _kernel(event) == _kernel(lines[-1].event)
        ):
            lines[-1].event = event
            lines[-1].count += 1
        else:
            lines.append(Entry(event))


class Lines:
    """The entries of a log that grows at its end and is cut off at its start: only what is new is looked at."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._taken = 0
        self._last: Event | None = None
        self._replay = False

    def update(self, log: Sequence[Event], *, replay: bool) -> None:
        known = next((place + 1 for place in reversed(range(len(log))) if log[place] is self._last), 0)
        if not known or known > self._taken or replay is not self._replay:
            self.entries = entries(log, replay=replay)
        else:
            self._cut_off(self._taken - known)
            _add(self.entries, log[known:], replay)
        self._taken, self._last, self._replay = len(log), log[-1] if log else None, replay

    def _cut_off(self, events: int) -> None:
        """Without the oldest events; of hits in a row the newer ones stay a line."""
        whole = 0
        while events and events >= self.entries[whole].count:
            events -= self.entries[whole].count
            whole += 1
        del self.entries[:whole]
        if events:
            self.entries[0].count -= events


def _quiet_hit(event: Event) -> bool:
    return isinstance(event, Measured) and event.cached and not event.best


def _kernel(event: Event) -> str:
    return event.kernel if isinstance(event, Measured) else ""


def schedule_words(schedule: str) -> str:
    """A schedule, as words or as its canonical JSON, as knob=value words in the order of the forks.

    Other text is returned as it is.
    """
    try:
        words = [f"{name}={value}" for name, value in Schedule.from_key(schedule).knobs]
    except ValueError:
        words = schedule.split(" ")
        if not all("=" in word for word in words):
            return schedule
    return " ".join(sorted(words, key=lambda word: KNOB_ORDER.get(word.partition("=")[0], len(KNOB_ORDER))))


def _over(end: RunFinished, snapshot: Snapshot) -> str:
    """Whose end it is where there are several programs: a replay's all of them, a database's one each."""
    programs, own = len(snapshot.programs), program_sum_us(snapshot)
    if programs < 2:
        return ""
    what = "kernel" if kernels_alone(snapshot) else "program"
    if end is not snapshot.finished:
        return f"one {what}: "
    alone = end.sum_us is None or own is None or math.isclose(end.sum_us, own, rel_tol=1e-6)
    if what == "kernel":
        return f"{len(snapshot.kernels)} kernels: " if alone else "one kernel: "
    return f"program {programs}: " if alone else f"{programs} programs: "


def _label(snapshot: Snapshot, kernel: str, glyphs: Glyphs) -> str:
    row = snapshot.kernels.get(kernel)
    return clean(kernel_name(row, snapshot) if row else kernel, glyphs)


def entry_line(entry: Entry, snapshot: Snapshot, width: int, glyphs: Glyphs) -> Line:
    event = entry.event
    if isinstance(event, Measured):
        word, tone, text = _measured(event, entry.count, snapshot, glyphs)
    else:
        word, tone, text = _other(event, snapshot, glyphs)
    return [
        (fmt.clock(event.at) + " ", Tone.DIM),
        (left(word, 7), tone),
        (clean(text, glyphs), Tone.PLAIN if tone is not Tone.DIM else Tone.DIM),
    ]


def _measured(event: Measured, count: int, snapshot: Snapshot, glyphs: Glyphs) -> tuple[str, Tone, str]:
    label = _label(snapshot, event.kernel, glyphs)
    knobs = schedule_words(event.schedule)
    if count > 1:
        return HIT, Tone.DIM, f"{label}  {count} from the database, no GPU work"
    if event.status == "failed":
        return "FAIL", Tone.BAD, f"{label}  {event.failure}: {event.cause}  {knobs}"
    if event.us is None:
        return "none", Tone.DIM, f"{label}  {event.status}  {knobs}"
    regime = f" {event.regime}" if not event.trial else ""
    text = f"{label}  {fmt.us(event.us)} us{regime}  {knobs}"
    if event.best:
        return "BEST", Tone.GOOD, text
    return (HIT, Tone.DIM, text) if event.cached else ("ok", Tone.PLAIN, text)


def _other(event: Event, snapshot: Snapshot, glyphs: Glyphs) -> tuple[str, Tone, str]:
    match event:
        case StateChanged():
            tone = Tone.BAD if event.state == "failed" else Tone.BUSY
            return "state", tone, f"{event.state}{': ' if event.reason else ''}{event.reason}"
        case KernelFinished():
            best = f"  {fmt.us(event.best_us)} us" if event.best_us is not None else ""
            reason = f"  {event.reason}" if event.reason else ""
            tone = Tone.BAD if event.state == "failed" else Tone.GOOD
            return "kernel", tone, f"{_label(snapshot, event.kernel, glyphs)} {event.state}{best}{reason}"
        case GroupingScored():
            return ("group", *_scored(event, glyphs))
        case GroupingsExplored():
            return "group", Tone.PLAIN, _explored(event)
        case Assembled():
            if event.reason == Status.NOT_RECORDED:
                return "whole", Tone.DIM, "the whole program's time is not in the recording"
            if event.assembled_us is None:
                return "FAIL", Tone.BAD, f"assembled program: {event.reason}"
            gap = fmt.change(event.sum_us, event.assembled_us)
            how = " with dependent launch" if event.pdl else ""
            return "whole", Tone.GOOD, f"assembled{how} {fmt.us(event.assembled_us)} us, {gap}% against the sum"
        case ComparedInPlace():
            tone = Tone.PLAIN if event.kept == event.schedules[0] else Tone.GOOD
            return "place", tone, f"{_label(snapshot, event.kernel, glyphs)} {event.text}"
        case RunFinished():
            counts = f"{_over(event, snapshot)}measured {event.measured}, cached {event.cached}, failed {event.failed}"
            total = f"{glyphs.total} {fmt.us(event.sum_us)} us"
            return "end", Tone.GOOD, f"{counts} in {fmt.duration(event.wall_s)}  {total}"
        case Acted() | Respawned() | PriorRefit():
            return _beside_the_search(event, snapshot, glyphs)
        case Logged():
            return event.level[:5], Tone.BAD if event.level == "error" else Tone.DIM, event.text
        case _:
            return "event", Tone.DIM, type(event).__name__


def _scored(event: GroupingScored, glyphs: Glyphs) -> tuple[Tone, str]:
    if event.bounded:
        return Tone.DIM, f"grouping not tuned  {event.reason}"
    reason = f"  {event.reason}" if event.reason else ""
    return Tone.PLAIN, f"grouping scored  {glyphs.total} {fmt.us(event.sum_us)} us{reason}"


def _explored(event: GroupingsExplored) -> str:
    least = "" if event.exact else "at least "
    bounded = f"{event.bounded} that can't win, " if event.bounded else ""
    counts = f"{event.entered} groupings entered, {event.failed} failed, {bounded}{least}{event.untried} left untried"
    return f"{counts}  {event.reason}"


def _beside_the_search(
    event: Acted | Respawned | PriorRefit, snapshot: Snapshot, glyphs: Glyphs
) -> tuple[str, Tone, str]:
    """What people asked, what candidates took down, and what was learned."""
    match event:
        case Acted():
            who = f"{event.author} asked: " if event.author else "asked: "
            kernel = f" {_label(snapshot, event.kernel, glyphs)}" if event.kernel else ""
            return "act", Tone.BUSY, f"{who}{event.verb}{kernel}{' ' if event.detail else ''}{event.detail}"
        case Respawned():
            whose = f"{_label(snapshot, event.kernel, glyphs)} {event.schedule}" if event.kernel else "whole program"
            return "lost", Tone.BAD, f"{event.device} {event.process}: {event.cause}  {whose}"
        case PriorRefit():
            return "prior", Tone.PLAIN, f"fitted to {fmt.plural(event.rows, 'row')}: {event.reason}"


class EventLog(ListPanel):
    """The log, held at its newest line until a person scrolls up."""

    def __init__(self, view: View, *, id: str = "log") -> None:
        super().__init__(view, id=id)
        self.following = True
        self._lines = Lines()
        self._anchor: Event | None = None
        self.framed = False

    def title(self) -> Line:
        return titled("Events")

    def note(self) -> Line:
        dot = self.view.glyphs.dot
        follow = f"follow {'on' if self.following else 'off'} {dot} f"
        dropped = f" {dot} {self.view.dropped} dropped" if self.view.dropped else ""
        return [(f"{fmt.count(len(self._entries))} lines{dropped} {dot} {follow}", Tone.DIM)]

    def empty(self) -> str:
        return "Nothing happened yet"

    @property
    def _entries(self) -> list[Entry]:
        return self._lines.entries

    def count(self) -> int:
        return len(self._entries)

    def update(self) -> None:
        """Take in the log again; what a person looks at stays where it is while lines come and go around it."""
        self._lines.update(self.view.snapshot.log, replay=self.view.mode is Mode.REPLAY)
        if self.following:
            self.cursor = len(self._entries) - 1
            self.top = len(self._entries)
            return
        place = next((n for n, entry in enumerate(self._entries) if entry.event is self._anchor), None)
        if place is not None:
            self.top += place - self.cursor
            self.cursor = place

    def lines(self, width: int, height: int) -> list[Line]:
        if self.following:
            self.top = len(self._entries)
        return super().lines(width, height)

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        shown = self._entries[start : start + count]
        return [entry_line(entry, self.view.snapshot, width, self.view.glyphs) for entry in shown]

    def selected(self) -> Event | None:
        return self._entries[self.cursor].event if self.cursor < len(self._entries) else None

    def follow(self, on: bool) -> None:
        self.following = on
        self._anchor = self.selected()
        self.update()

    def moved(self) -> None:
        self.following = False
        self._anchor = self.selected()

    def scrolled(self, by: int) -> None:
        self.following = False
        self._anchor = self.selected()
        super().scrolled(by)
