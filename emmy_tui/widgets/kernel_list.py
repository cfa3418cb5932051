"""Every distinct kernel of the program: what it is, how far its search is, and its share of the total.

`#` counts its candidates, each once however many runs asked for it. `us` is the time that counts, at every width: the
deploy regime's of what would deploy, before there is one the ranking time; sum and shares are made of it, and the list
is sorted by it. `first`, `ranking` and the change between them are times of the ranking regime, which alone compare
with each other: the first candidate's, and the search's best. Where the GPU's ceilings were measured, `floor` says how
many times what the kernel takes at those rates `us` is, and by which: m for memory, c for compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from emmy_tui import format as fmt
from emmy_tui.known import RECORDED
from emmy_tui.text import Glyphs, Line, Tone, clean, left, right, width_of
from emmy_tui.view import View
from emmy_tui.widgets.kernel_name import equal_labels, short_name
from emmy_tui.widgets.panel import ListPanel, titled
from emmy_tui.widgets.totals import total_lines
from engine.events import KernelState
from engine.snapshot import KernelRow, Snapshot

TOTALS_FROM = 11
DROPPED = ("first", "floor", "ranking", "change")
"""Columns that go first where names would be cut so that two look alike."""


class KernelOrder(StrEnum):
    """The orders that `s` goes through."""

    RUN = "run"
    COST = "cost"
    TIME = "time"


_ORDERS = {
    **dict.fromkeys(("kernel", "shape"), KernelOrder.RUN),
    "us": KernelOrder.TIME,
    **dict.fromkeys(("of", "all"), KernelOrder.COST),
}


def order_of(heading: str) -> KernelOrder | None:
    """The order that a word of the headings stands for."""
    return _ORDERS.get(heading)


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths of the columns for a panel of some width; 0 leaves one out."""

    label: int
    shape: int = 0
    times: int = 0
    trials: int = 4
    us: int = 7
    share: int = 0
    floor: int = 0
    first: int = 0
    ranking: int = 0
    change: int = 5
    state: int = 3

    @classmethod
    def of(
        cls,
        width: int,
        longest: int = 24,
        *,
        alike: bool = False,
        floors: bool = False,
        without: Sequence[str] = (),
    ) -> Columns:
        """Columns that fill `width` cells; `longest` is the widest label, `floors` says that floors are known.

        Where kernels are `alike` by their labels, the shape gets more room: in a narrow panel, the change's place.
        Columns `without` which it should do, of DROPPED, give their room to the names.
        """
        if width < 58:
            change = 0 if alike or "change" in without else 5
            plain = cls(label=0, change=change)
            taken = plain.trials + plain.us + change + plain.state + 3 + (change > 0)
            return replace(plain, label=max(4, width - 2 - taken))
        first, share = (7, 6) if width >= 74 else (0, 0)
        floor = 6 if floors and "floor" not in without else 0
        ranking = 7 if "ranking" not in without else 0
        change = 5 if "change" not in without else 0
        if (floors and width < 90) or "first" in without:
            first = 0
        state = 10 if width >= 90 else 3
        widths = (4, 4, 7, share, floor, first, ranking, change, state)
        columns = cls(0, 0, *widths)
        rest = max(12, width - 2 - sum(widths) - sum(width > 0 for width in widths) - 1)
        most = rest * 5 // 12 if alike else rest * 6 // 11
        label = min(max(6, longest), max(6, most))
        return replace(columns, label=label, shape=rest - label)


def state_mark(row: KernelRow, glyphs: Glyphs, lost: bool = False) -> tuple[str, str, Tone]:
    """Glyph, word and tone of a kernel's state; where the run is `lost`, nobody tunes it."""
    match row.state:
        case KernelState.TUNING if not lost:
            return glyphs.running, "tuning", Tone.BUSY
        case KernelState.TUNING | KernelState.CUT_OFF:
            return glyphs.waiting, str(KernelState.CUT_OFF), Tone.DIM
        case KernelState.DONE:
            return glyphs.done, "done", Tone.GOOD
        case KernelState.FAILED:
            return glyphs.failed, "failed", Tone.BAD
        case state if state == RECORDED:
            return glyphs.done, RECORDED, Tone.DIM
        case _:
            return glyphs.waiting, "waiting", Tone.DIM


def header_line(columns: Columns, glyphs: Glyphs) -> Line:
    cells = ["  " + left("kernel", columns.label)]
    if columns.shape:
        cells.append(left("shape", columns.shape))
    if columns.times:
        cells.append(right(glyphs.times, columns.times))
    cells.append(right("#", columns.trials))
    cells.append(right("us", columns.us))
    if columns.share:
        cells.append(right("of all", columns.share))
    if columns.floor:
        cells.append(right(f"{glyphs.times}floor", columns.floor))
    if columns.first:
        cells.append(right("first", columns.first))
    if columns.ranking:
        cells.append(right("ranking", columns.ranking))
    if columns.change:
        cells.append(right(f"{glyphs.delta}%", columns.change))
    cells.append(left("state" if columns.state > 5 else "st", columns.state))
    return [(" ".join(cells), Tone.DIM)]


def kernel_line(
    row: KernelRow,
    count: int | None,
    total: float | None,
    shown: bool,
    columns: Columns,
    glyphs: Glyphs,
    name: str | None = None,
    marked: bool = False,
    lost: bool = False,
) -> Line:
    """One kernel, by its label or another name. `count` is how often it occurs in what `total` (us) sums up; None if
    it is no part of it. `lost` says that the run is taken for ended."""
    glyph, word, tone = state_mark(row, glyphs, lost)
    spans: Line = [(f"{glyphs.cursor if shown else ' '}{'+' if marked else ' '}", Tone.ACCENT)]
    spans.append((left(clean(row.label if name is None else name, glyphs), columns.label, glyphs) + " ", Tone.PLAIN))
    if columns.shape:
        spans.append((left(clean(row.shape, glyphs), columns.shape, glyphs) + " ", Tone.DIM))
    if columns.times:
        spans.append((right(_occurs(row.count if count is None else count), columns.times) + " ", Tone.DIM))
    spans.append((right(fmt.count(row.candidates), columns.trials) + " ", Tone.PLAIN))
    spans.append((right(fmt.us(row.chosen_us), columns.us) + " ", Tone.PLAIN))
    if columns.share:
        part = None if row.chosen_us is None or count is None else row.chosen_us * count
        spans.append((right(fmt.share(part, total), columns.share) + " ", Tone.PLAIN))
    if columns.floor:
        spans.append((right(floor_text(row), columns.floor) + " ", Tone.PLAIN))
    if columns.first:
        spans.append((right(fmt.us(row.first_us), columns.first) + " ", Tone.DIM))
    if columns.ranking:
        spans.append((right(fmt.us(row.best_us), columns.ranking) + " ", Tone.DIM))
    if columns.change:
        spans.append((right(fmt.change(row.first_us, row.best_us), columns.change) + " ", Tone.DIM))
    only_failed = row.failed and row.best_us is None
    if columns.state > 5:
        text = f"{glyph} {word}" + (f" {row.failed}" if only_failed else "")
    else:
        text = f"{glyph}{row.failed}" if only_failed else glyph
    spans.append((left(text, columns.state, glyphs), tone))
    return spans


def _occurs(count: int) -> str:
    return fmt.count(count) if count else "-"


def floor_text(row: KernelRow) -> str:
    """How many times its floor a kernel takes, and what binds: 1.83m, 12.4c."""
    over = row.over_floor
    return (
        "-"
        if over is None
        else (f"{over:.2f}" if over < 10 else f"{over:.1f}" if over < 1000 else ">999") + row.bound[:1]
    )


def longest_label(snapshot: Snapshot) -> int:
    return max((width_of(row.label) for row in snapshot.kernels.values()), default=6)


class KernelList(ListPanel):
    """The kernels in the order in which the run found them, or the costliest first."""

    def __init__(self, view: View, *, id: str = "kernels") -> None:
        super().__init__(view, id=id)
        self.order = KernelOrder.RUN
        self.reversed = False
        self.following = True
        """Whether the list scrolls to the cursor, which is always on the shown kernel; until a person scrolls away."""
        self._laid: tuple[tuple[object, ...], Columns] | None = None

    def title(self) -> Line:
        return titled("Kernels")

    def note(self) -> Line:
        snapshot = self.view.snapshot
        occurrences = sum(count for _, count in snapshot.counted_kernels())
        distinct = self.count()
        text = f"{distinct} distinct of {occurrences}" if occurrences > distinct and self.size.width > 50 else ""
        arrow = self.view.glyphs.rising if self.reversed else self.view.glyphs.falling
        by = f"by {self.order} {arrow}  " if self.order is not KernelOrder.RUN or self.reversed else ""
        return [(by, Tone.ACCENT), (text or str(distinct), Tone.DIM)] if distinct else []

    def empty(self) -> str:
        return "No kernel yet"

    def count(self) -> int:
        return len(self.view.snapshot.kernels)

    def header(self, width: int) -> Line | None:
        return header_line(self._columns(width), self.view.glyphs)

    def _columns(self, width: int) -> Columns:
        """The columns, laid out anew where the width changed, what the kernels are called, or that floors are known: a
        painting asks for them several times."""
        rows = self.view.snapshot.kernels.values()
        floors = any(row.floor_us is not None for row in rows)
        names = tuple((row.label, row.shape) for row in rows)
        of = (width, floors, self.view.glyphs, names)
        if self._laid is None or self._laid[0] != of:
            self._laid = of, self._laid_out(width, floors)
        return self._laid[1]

    def _laid_out(self, width: int, floors: bool) -> Columns:
        """The columns that fit; those of DROPPED go before two names look alike."""
        snapshot = self.view.snapshot
        longest, alike = longest_label(snapshot), bool(equal_labels(snapshot))
        laid = [
            Columns.of(width, longest, alike=alike, floors=floors, without=DROPPED[:number])
            for number in range(len(DROPPED) + 1)
        ]
        return next((columns for columns in dict.fromkeys(laid) if self._tells_apart(columns)), laid[-1])

    def _tells_apart(self, columns: Columns) -> bool:
        """Whether no two kernels of different names look alike, as they are cut."""
        snapshot, glyphs = self.view.snapshot, self.view.glyphs
        seen = {
            (
                (left(row.label, columns.label, glyphs), left(row.shape, columns.shape, glyphs))
                if columns.shape
                else (left(short_name(row, snapshot, columns.label, glyphs), columns.label, glyphs), "")
            )
            for row in snapshot.kernels.values()
        }
        return len(seen) == len({(row.label, row.shape) for row in snapshot.kernels.values()})

    def footing(self, width: int, height: int) -> list[Line]:
        if height < TOTALS_FROM or width < 40:
            return []
        return [[], *([] if self.view.reading else total_lines(self.view, width))]

    def ordered(self) -> list[KernelRow]:
        """All kernels in the order of the list. What has no time comes last; reversed, first.

        The cost of a kernel is its time as often as it occurs in its program, whichever program that is. By cost, the
        kernels of the chosen grouping come before those of others, which are no part of the total.
        """
        snapshot = self.view.snapshot
        rows = list(snapshot.kernels.values())
        counts = {row.kernel: occurs for row, occurs in snapshot.counted_kernels()}
        if self.order is KernelOrder.COST:
            rows.sort(key=lambda row: -(row.chosen_us or 0.0) * (counts.get(row.kernel) or row.count or 1))
        elif self.order is KernelOrder.TIME:
            rows.sort(key=lambda row: -(row.chosen_us or 0.0))
        rows = rows[::-1] if self.reversed else rows
        return sorted(rows, key=lambda row: row.kernel not in counts) if self.order is KernelOrder.COST else rows

    def lines(self, width: int, height: int) -> list[Line]:
        self._keep_to_shown()
        return super().lines(width, height)

    def _keep_to_shown(self) -> None:
        """Put the cursor on the shown kernel, wherever the order has it."""
        shown = self.view.kernel
        if shown is not None:
            self.cursor = self.ordered().index(shown)
            if self.following:
                self.reveal()

    def move_by(self, step: int) -> None:
        self._keep_to_shown()
        super().move_by(step)

    def moved(self) -> None:
        """The row under the cursor is the kernel that every panel and tab shows."""
        row = self.under_cursor(self.ordered())
        if row is self.view.kernel and row is not None:
            self.view.chosen, self.following = row.kernel, True
        else:
            self.action_select()

    def scrolled(self, by: int) -> None:
        self.following = False
        super().scrolled(by)

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        snapshot = self.view.snapshot
        counts = {row.kernel: occurs for row, occurs in snapshot.counted_kernels()}
        total = snapshot.counted_us()
        shown = self.view.kernel
        columns = self._columns(width)
        rows = self.ordered()[start : start + count]
        return [
            kernel_line(
                row,
                counts.get(row.kernel),
                total,
                row is shown,
                columns,
                self.view.glyphs,
                None if columns.shape else short_name(row, snapshot, columns.label, self.view.glyphs),
                row.kernel in self.view.marked,
                self.view.lost,
            )
            for row in rows
        ]

    def current(self) -> KernelRow | None:
        """The kernel under the cursor, which is the shown one."""
        return self.view.kernel

    def action_select(self) -> None:
        row = self.under_cursor(self.ordered())
        if row is not None:
            self.app.choose_kernel(row.kernel)  # type: ignore[attr-defined]
