"""What takes the screen where panels can't: a terminal that is too small, or nothing to show yet; and, above the panels
of every tab, why a run failed or what fills an empty database.

A failure's sentence names the way out at its end, so it is shown in full, over as many lines as it needs.
"""

from __future__ import annotations

import shlex

from emmy_tui import format as fmt
from emmy_tui.action import Named
from emmy_tui.actions import key_named
from emmy_tui.text import Line, Tone, clean, left, wrap
from emmy_tui.view import View
from emmy_tui.widgets.panel import Panel
from emmy_tui.widgets.status import mode_span, state_spans
from emmy_tui.widgets.totals import sum_text

PROMISE = "Emmy finds the fastest way to run a PyTorch program on the GPU in front of you."
WAYS_IN = (
    ("emmy-tui --demo", "replay a recorded search; no GPU needed ({demo} starts it here)"),
    ("emmy-tui FILE.db", "look through a database, or watch the run that writes it"),
    ("emmy-tui --code TEXT", "tune a PyTorch expression on the GPU of this machine"),
)


def start_lines(width: int, key: Named = key_named) -> list[Line]:
    """The three ways in."""
    lines: list[Line] = [
        [],
        *([("  " + row, Tone.HEAD)] for row in wrap(PROMISE, max(1, width - 4))),
        [],
        [("  There is no database yet. Three ways in:", Tone.PLAIN)],
        [],
    ]
    for command, meaning in WAYS_IN:
        for number, row in enumerate(wrap(meaning.format(demo=key("demo")), max(1, width - 30))):
            lines.append([("    " + left("" if number else command, 24), Tone.KEY), (row, Tone.PLAIN)])
    return [*lines, [], [("  An expression looks like this:", Tone.DIM)], *_example()]


def _example() -> list[Line]:
    text = "torch.matmul(torch.randn(512, 512, device='cuda'), torch.randn(512, 512, device='cuda'))"
    return [[("    emmy-tui --code \\", Tone.DIM)], [(f'      "{text}"', Tone.DIM)]]


def small_lines(view: View, width: int) -> list[Line]:
    """The status alone, one fact a line, in whatever room there is."""
    lines: list[Line] = []
    if view.mode is not None:
        lines = [
            [*mode_span(view), ("  ", Tone.PLAIN), *state_spans(view)],
            *(() if view.reading else _so_far(view)),
            *failure_lines(view, width),
        ]
    words = wrap("Too small: emmy-tui needs 60 x 15.", max(1, width))
    return [*lines, *([(word, Tone.DIM)] for word in words)]


def _so_far(view: View) -> list[Line]:
    elapsed = view.elapsed_s
    return [
        [(sum_text(view), Tone.PLAIN)],
        [(f"measured {fmt.count(view.snapshot.measured)}", Tone.PLAIN)],
        [(fmt.duration(elapsed) if elapsed is not None else "", Tone.PLAIN)],
    ]


def empty_lines(view: View, width: int) -> list[Line]:
    """What fills a database that holds nothing, wrapped; nothing elsewhere."""
    if not view.empty:
        return []
    where = f"--db {shlex.quote(view.database)}"
    text = (
        f"This database holds no run yet. On a GPU `emmy tune --code TEXT {where}` fills it, anywhere "
        f"`emmy import RESULTS {where}` does; what they write shows here."
    )
    return [[(row, Tone.HEAD)] for row in wrap(clean(text, view.glyphs), max(1, width))]


def failure_lines(view: View, width: int) -> list[Line]:
    """Why the run failed, wrapped; nothing where it didn't."""
    text = clean(view.failure, view.glyphs)
    return [[(row, Tone.BAD)] for row in wrap(text, max(1, width))] if text else []


class Failure(Panel):
    """Between the tabs and the panels, as high as the sentence is."""

    framed = False

    def lines(self, width: int, height: int) -> list[Line]:
        lines = failure_lines(self.view, width - 2) or empty_lines(self.view, width - 2)
        return [[(" ", Tone.PLAIN), *line] for line in lines]

    def fit(self, width: int, height: int) -> None:
        """Take the lines that the sentence needs, at most a third of the screen; hide without one."""
        wanted = min(len(self.lines(width, height)), max(1, height // 3))
        self.display = wanted > 0
        if wanted:
            self.styles.height = wanted


class Notice(Panel):
    """Shown by the application in place of the panels."""

    framed = False

    def __init__(self, view: View, *, id: str = "notice") -> None:
        super().__init__(view, id=id)
        self.too_small = False

    def lines(self, width: int, height: int) -> list[Line]:
        return small_lines(self.view, width) if self.too_small else start_lines(width, self.view.key)
