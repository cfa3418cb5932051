"""The leading grouping as a graph: every launch with what it reads and who reads it, and the decisions behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from emmy_tui import format as fmt
from emmy_tui.desk import Desk
from emmy_tui.text import Line, Tone, clean, crop, left, right, wrap
from emmy_tui.view import View
from emmy_tui.widgets.kernel_name import kernel_name
from emmy_tui.widgets.panel import ListPanel, titled
from engine.snapshot import GroupingRow
from engine.store import Store, StoreError

EDGES_SHOWN = 4
FOLDED_FROM = 2
"""Lines of decisions that are shown whole; more are folded to one."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch. `reads` are launches by their number from 1, `inputs` counts what comes from outside."""

    kernel: str
    label: str
    shape: str
    reads: tuple[int, ...]
    inputs: int
    read_by: tuple[int, ...]


def read_plan(run: str, decisions: Sequence[str]) -> Callable[[Store], tuple[Launch, ...]]:
    """The question that a desk answers: the launches of a run's grouping, found by its decisions."""

    def question(store: Store) -> tuple[Launch, ...]:
        wanted = tuple(decisions)
        for recorded in store.recorded_groupings(run):
            if tuple(str(option) for option in recorded.decisions) == wanted:
                calls = recorded.grouping.calls
                break
        else:
            raise StoreError("the plan of this grouping isn't in the database yet")
        made_by = {buffer: number for number, call in enumerate(calls, 1) for buffer in call.results}
        reads = [
            tuple(dict.fromkeys(made_by[view.buffer] for view in call.arguments if view.buffer in made_by))
            for call in calls
        ]
        return tuple(
            Launch(
                call.kernel.key,
                call.kernel.label or call.kernel.family,
                call.kernel.shape_text,
                reads[number - 1],
                sum(view.buffer not in made_by for view in call.arguments),
                tuple(other for other, sources in enumerate(reads, 1) if number in sources),
            )
            for number, call in enumerate(calls, 1)
        )

    return question


class PlanPanel(ListPanel):
    """Asks the desk whenever another grouping leads."""

    def __init__(self, view: View, desk: Desk, *, id: str = "plan") -> None:
        super().__init__(view, id=id)
        self._desk = desk
        self._asked: tuple[str, str] = ("", "")
        self._launches: tuple[Launch, ...] = ()
        self._sentence = "No grouping yet"
        self._unfolded = False

    def title(self) -> Line:
        return titled("Best grouping")

    def note(self) -> Line:
        row = self.view.snapshot.leading_grouping()
        if row is None or not self._launches:
            return []
        total = f"{self.view.glyphs.total} {fmt.us(row.sum_us)} us, " if row.sum_us else ""
        decided = f", {fmt.plural(len(row.decisions), 'decision')}" if row.decisions else ""
        return [(f"{total}{fmt.plural(len(self._launches), 'launch')}{decided}", Tone.DIM)]

    def empty(self) -> str:
        return self._sentence

    def update(self) -> None:
        """Ask for the plan of the grouping that leads now, if it is another one."""
        row = self.view.snapshot.leading_grouping()
        wanted = (row.run, row.grouping) if row is not None else ("", "")
        if wanted == self._asked or row is None:
            return
        self._asked, self._launches, self._sentence = wanted, (), "Reading the database"
        self._desk.ask("plan", read_plan(row.run, row.decisions), self._found, self._none)

    def _found(self, launches: tuple[Launch, ...]) -> None:
        self._launches = launches
        self.repaint()

    def _none(self, sentence: str) -> None:
        self._asked, self._sentence = ("", ""), sentence
        self.repaint()

    def _foot(self, width: int) -> list[Line]:
        """The decisions, below the launches: a model has a hundred, so they are one line until they are asked for."""
        row = self.view.snapshot.leading_grouping()
        texts = decision_rows(row, width, self.view) if self._launches else []
        if row is not None and len(texts) > FOLDED_FROM and not self._unfolded:
            glyphs = self.view.glyphs
            head = f"decided: {fmt.plural(len(row.decisions), 'answer')}, {self.view.key('select')} shows all: "
            texts = [crop(head + texts[0].removeprefix("decided: "), max(1, width), glyphs)]
        return [[(text, Tone.ACCENT)] for text in texts]

    def count(self) -> int:
        return len(self._launches) + len(self._foot(self.inner_size.width)) if self._launches else 0

    def header(self, width: int) -> Line | None:
        if not self._launches:
            return None
        name, edges = _widths(width)
        text = right("#", 4) + "  " + left("kernel", name) + right("us", 9) + "  " + left("reads", edges)
        return [(text + " " + left("read by", edges), Tone.DIM)]

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        launches = self._launches[start : start + count]
        lines = [self._line(number, launch, width) for number, launch in enumerate(launches, start + 1)]
        first = max(0, start - len(self._launches))
        return [*lines, *self._foot(width)[first : first + count - len(lines)]]

    def _line(self, number: int, launch: Launch, width: int) -> Line:
        glyphs, snapshot = self.view.glyphs, self.view.snapshot
        name, edges = _widths(width)
        row = snapshot.kernels.get(launch.kernel)
        label = kernel_name(row, snapshot) if row is not None else f"{launch.label} {launch.shape}"
        outside = (fmt.plural(launch.inputs, "input"),) if launch.inputs else ()
        reads = ", ".join((*_numbers(launch.reads), *outside)) or "-"
        return [
            (right(str(number), 4) + "  ", Tone.DIM),
            (left(clean(label, glyphs), name, glyphs), Tone.PLAIN),
            (right(fmt.us(row.chosen_us if row is not None else None), 9) + "  ", Tone.PLAIN),
            (left(reads, edges, glyphs), Tone.DIM),
            (" " + left(", ".join(_numbers(launch.read_by)) or "the result", edges, glyphs), Tone.DIM),
        ]

    def action_select(self) -> None:
        """Show the kernel of this launch; on the decisions, show all of them or fold them again."""
        if self.cursor < len(self._launches):
            self.app.choose_kernel(self._launches[self.cursor].kernel)  # type: ignore[attr-defined]
        elif self._launches:
            self._unfolded = not self._unfolded
            self.move_to(len(self._launches))


def decision_rows(row: GroupingRow | None, width: int, view: View) -> list[str]:
    """The structural options that led here, as text."""
    if row is None:
        return []
    text = "decided: " + ("; ".join(row.decisions) or "nothing, as there is no structural fork")
    return wrap(clean(text, view.glyphs), max(1, width))


def _widths(width: int) -> tuple[int, int]:
    """Of the name and of each column of edges."""
    edges = max(10, min(26, (width - 17) // 4))
    return max(8, width - 18 - 2 * edges), edges


def _numbers(numbers: Sequence[int]) -> tuple[str, ...]:
    shown = tuple(str(number) for number in numbers[:EDGES_SHOWN])
    return (*shown, f"+{len(numbers) - EDGES_SHOWN}") if len(numbers) > EDGES_SHOWN else shown
