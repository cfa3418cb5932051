"""What a person asks of the engine beyond start and stop: skip, patience, tune again, and the list of what was asked.

Tuning again needs the database alone. While a run is on, kernels are queued behind it; else a session of its own is
opened. What is missing on this machine is said in one sentence, with the replay that works without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from emmy_tui import format as fmt
from emmy_tui.desk import Desk
from emmy_tui.dialogs import Dialog, Reading, TextPanel
from emmy_tui.knob_words import short_words
from emmy_tui.outlet import Outlet
from emmy_tui.refusal import BadInput
from emmy_tui.source import Again, Mode, Source
from emmy_tui.text import Line, Tone, clean, left, width_of, wrap
from emmy_tui.view import View
from emmy_tui.widgets.kernel_name import kernel_name, known_name
from engine.events import KernelState
from engine.snapshot import KernelRow
from engine.store import StoredAct

Launch = Callable[[Path, Sequence[Again]], Source]
"""Opens a session that tunes kernels of a database again; raises BadInput with what is missing."""
Replays = Callable[[Path, Sequence[Again]], Source]
"""Opens a replay of what a database recorded of these kernels."""
PATIENCE_STEP = 10
ENDING_S = 10.0
"""A kernel that was asked to end is taken for ending for so long; what is tuned after that was begun anew."""
NAMED = 6


class Steering:
    """One screen's requests. `take_over` shows another source, of so many programs, in place of this one."""

    def __init__(
        self,
        view: View,
        desk: Desk,
        outlet: Outlet,
        *,
        source: Callable[[], Source | None],
        take_over: Callable[[Source, int], None],
        launch: Launch | None,
        replays: Replays | None,
    ) -> None:
        self._view = view
        self._desk = desk
        self._outlet = outlet
        self._source = source
        self._take_over = take_over
        self._launch = launch
        self._replays = replays
        self._ending: dict[str, float] = {}

    def skip(self) -> None:
        """End the search that is on: that of the shown kernel, if it is one, else the newest."""
        row, source = self._tuned(), self._source()
        if row is None or source is None:
            self._outlet.warn("no kernel is being tuned at the moment")
            return
        source.skip(row.kernel)
        self._ending[row.kernel] = self._view.now
        self._outlet.say(f"{self._name(row)} is skipped: it keeps the best that it has")

    def patience(self, by: int) -> None:
        """Of the shown kernel while it is tuned or waits, else of the one that is tuned, else of the next one."""
        row, source = self._patient(), self._source()
        if row is None or source is None:
            self._outlet.warn("no kernel is being tuned at the moment, and none waits")
            return
        usual = self._view.snapshot.run.patience if self._view.snapshot.run else 50
        wanted = max(1, (row.patience or usual) + by)
        source.set_patience(row.kernel, wanted)
        when = "from its next candidate on" if row.state == KernelState.TUNING else "once it is its turn"
        self._outlet.say(f"{self._name(row)}: patience {wanted} {when}")

    def kill_compile(self, number: int, kernel: str, schedule: str) -> None:
        """End a compile; its candidate fails, and the run goes on."""
        source = self._source()
        if source is not None:
            source.kill_compile(number, kernel, schedule)
            row = self._view.snapshot.kernels.get(kernel)
            whose = self._name(row) if row is not None else "an assembled program"
            self._outlet.say(f"a compile of {whose} is ended; its candidate fails")

    def _tuned(self) -> KernelRow | None:
        shown = self._view.kernel
        tuning = [row for row in self._view.snapshot.kernels.values() if self._goes_on(row)]
        if shown is not None and self._goes_on(shown):
            return shown
        return tuning[-1] if tuning else None

    def _goes_on(self, row: KernelRow) -> bool:
        """Whether the kernel is tuned, and was not just asked to end."""
        asked = self._ending.get(row.kernel)
        ending = asked is not None and self._view.now - asked < ENDING_S
        return row.state == KernelState.TUNING and not ending

    def _patient(self) -> KernelRow | None:
        """Whose patience is meant."""
        shown, snapshot = self._view.kernel, self._view.snapshot
        if shown is not None and shown.state == KernelState.WAITING:
            return shown
        waiting = [row for row in snapshot.kernels.values() if row.state == KernelState.WAITING]
        queued = [snapshot.kernels[key] for key in snapshot.queue if key in snapshot.kernels]
        return self._tuned() or next(iter([*waiting, *queued]), None)

    def _name(self, row: KernelRow) -> str:
        return kernel_name(row, self._view.snapshot)

    def retune(self, app: App[Any], wanted: Sequence[Again]) -> None:
        """Queue the kernels behind the run that is on, or ask whether to begin one with them."""
        source = self._source()
        if source is None or source.locate is None or not wanted:
            return
        wanted = [replace(one, label=known_name(one.kernel, one.label, self._view.snapshot)) for one in wanted]
        if "retune" in source.capabilities:
            source.enqueue(wanted)
            self._outlet.say(f"queued behind the run: {names(wanted)}; {self._view.key('acts')} lists the queue")
            return
        if self._view.busy and source.mode is Mode.LIVE:
            again = self._view.key("retune")
            self._outlet.warn(f"the run is starting or stopping; press {again} again when it has")
            return
        path = source.locate()
        try:
            if self._launch is None:
                raise BadInput("this screen was started without a way to tune")
            begun = self._launch(path, wanted)
        except BadInput as missing:
            self._offer_replay(app, path, wanted, str(missing))
            return
        kernels = len({one.kernel for one in wanted})
        app.push_screen(Confirm(self._view, retune_lines(wanted), "Tune again?"), self._then_begin(begun, kernels))

    def _then_begin(self, begun: Source, programs: int) -> Callable[[str | None], None]:
        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._take_over(begun, programs)
                begun.start()

        return answered

    def _offer_replay(self, app: App[Any], path: Path, wanted: Sequence[Again], missing: str) -> None:
        if self._replays is None or self._view.mode is Mode.REPLAY:
            self._outlet.warn(missing.split(";")[0])
            return
        replays = self._replays
        sentence = f"Nothing can be tuned here: {missing.split(';')[0]}."
        lines: list[Line] = [[(row, Tone.PLAIN)] for row in wrap(sentence, 60)]
        kernels = list({one.kernel: one for one in wanted}.values())
        back = self._view.key("earlier")
        offer = f"replay the recorded search of {names(kernels)}, with no GPU; {back} comes back here"
        lines.append([])
        for number, row in enumerate(wrap(clean(offer, self._view.glyphs), 52)):
            lines.append([("        " if number else "  enter ", Tone.KEY), (row, Tone.PLAIN)])

        def answered(answer: str | None) -> None:
            if answer == "yes":
                self._take_over(replays(path, kernels), len(kernels))

        app.push_screen(Confirm(self._view, lines, "No GPU to tune on"), answered)

    def list_acts(self, app: App[Any]) -> None:
        """Show what waits, and what people asked for, of every run in the database."""

        def show(acts: Sequence[StoredAct]) -> None:
            app.push_screen(Reading(self._view, partial(act_lines, self._view, acts), "Queue and acts"))

        source = self._source()
        if source is None or source.locate is None:
            show(())
        else:
            self._desk.ask("acts", lambda store: store.acts(), show, self._outlet.warn, opens=True)


def names(wanted: Sequence[Again]) -> str:
    """The kernels by name, the first few."""
    text = ", ".join(one.label for one in wanted[:NAMED])
    return f"{text} and {len(wanted) - NAMED} more" if len(wanted) > NAMED else text


def retune_lines(wanted: Sequence[Again]) -> list[Line]:
    """What a run of these kernels comes to."""
    lines: list[Line] = []
    for one in wanted[:NAMED]:
        what = f"  one candidate: {short_words(one.schedule.as_dict())}" if one.schedule else ""
        lines.append([(f"  {clean(one.label)}", Tone.HEAD), (clean(what), Tone.PLAIN)])
    if len(wanted) > NAMED:
        lines.append([(f"  and {len(wanted) - NAMED} more", Tone.PLAIN)])
    return [
        *lines,
        [],
        [(f"  {fmt.plural(len(wanted), 'run')}, one a kernel, with the patience that emmy-tui was given.", Tone.PLAIN)],
        [("  What this GPU and toolchain measured before is served from the database.", Tone.DIM)],
        [],
        [("  enter ", Tone.KEY), ("begin", Tone.PLAIN)],
    ]


def act_lines(view: View, acts: Sequence[StoredAct], width: int) -> list[Line]:
    """The queue, the acts of the shown run that the database may not have yet, and those that it has."""
    snapshot, glyphs = view.snapshot, view.glyphs
    lines: list[Line] = [[("Waiting to be tuned again", Tone.HEAD)]]
    for place, key in enumerate(snapshot.queue, 1):
        row = snapshot.kernels.get(key)
        lines.append([(f"  {place}  {clean(kernel_name(row, snapshot) if row else key, glyphs)}", Tone.PLAIN)])
    if not snapshot.queue:
        lines.append([("  nothing", Tone.DIM)])
    lines += [[], [("What was asked, the newest first", Tone.HEAD)]]
    kept = {(act.at, act.verb) for act in acts}
    fresh = [act for act in reversed(snapshot.acts) if (act.at, act.verb) not in kept]
    told = [(act.at, act.author, act.verb, _kernel(view, act.kernel), act.detail) for act in fresh]
    told += [(act.at, act.author, act.verb, act.label or act.kernel_key, act.detail) for act in acts]
    for at, author, verb, kernel, detail in told:
        head = f"  {fmt.moment(at)}  {left(clean(author or '-', glyphs), 9, glyphs)} "
        text = " ".join(part for part in (verb, kernel, detail) if part)
        for number, part in enumerate(wrap(clean(text, glyphs), max(10, width - width_of(head)))):
            lines.append([(" " * width_of(head) if number else head, Tone.DIM), (part, Tone.PLAIN)])
    return lines if told else [*lines, [("  nothing", Tone.DIM)]]


def _kernel(view: View, key: str) -> str:
    row = view.snapshot.kernels.get(key)
    return kernel_name(row, view.snapshot) if row is not None else key


class Confirm(Dialog):
    """Answers "yes", or ""."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,y", "answer('yes')", show=False),
        Binding("escape,n,q", "answer", show=False),
    ]

    def __init__(self, view: View, lines: Sequence[Line], title: str) -> None:
        body = [[], *lines, [("  esc   ", Tone.KEY), ("leave it", Tone.PLAIN)], []]
        super().__init__(TextPanel(view, body, title))
