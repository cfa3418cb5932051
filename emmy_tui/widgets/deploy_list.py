"""What each kernel of the shown programs would run as now, and which evidence decides that; ~ marks a prediction."""

from __future__ import annotations

from collections.abc import Sequence

from emmy_tui import format as fmt
from emmy_tui.deploying import Deploys
from emmy_tui.knob_words import long_words, short_words
from emmy_tui.recorded import recorded
from emmy_tui.text import Glyphs, Line, Tone, clean, crop, left, right, wrap
from emmy_tui.view import View
from emmy_tui.widgets.kernel_name import Names
from emmy_tui.widgets.panel import ListPanel, titled
from engine.deploy import Evidence, Source

SOURCE = 14
_SHORT = {
    Source.PIN: "pin",
    Source.IN_PLACE: "in the graph",
    Source.DEPLOY: "deploy time",
    Source.RANKING: "ranking time",
    Source.PRIOR: "prediction",
    Source.FIRST: "first legal",
}
_TONES = {Source.PIN: Tone.ACCENT, Source.PRIOR: Tone.BUSY, Source.FIRST: Tone.BUSY}


def _widths(width: int, names: Names, knobs: int) -> tuple[int, int, int]:
    """Of kernel, shape (0 leaves it out) and knobs, which need `knobs` cells."""
    kernel, shape = (20, 24) if width >= 120 else (20, 0) if width >= 100 else (12, 0)
    fixed = 1 + (shape + 1 if shape else 0) + 9 + 10 + 1 + SOURCE
    if not shape:
        rest = width - fixed
        kernel = names.column(kernel, rest - min(knobs, rest * 2 // 5))
    return kernel, shape, max(8, width - fixed - kernel)


def deploy_line(one: Deploys, widths: tuple[int, int, int], glyphs: Glyphs, names: Names) -> Line:
    """One kernel; its name tells it from others of the same label, where no column of shapes does."""
    kernel, shape, knobs = widths
    name = crop(clean(one.label, glyphs), kernel, glyphs) if shape else names.name(one.kernel, kernel, glyphs)
    spans: Line = [(left(name, kernel) + " ", Tone.PLAIN)]
    if shape:
        spans.append((left(clean(one.shape, glyphs), shape, glyphs) + " ", Tone.DIM))
    if one.chosen is None:
        spans.append((clean(one.why, glyphs), Tone.DIM))
        return spans
    source = one.chosen.source
    return [
        *spans,
        (left(clean(short_words(one.knobs), glyphs), knobs, glyphs), Tone.PLAIN),
        (right(_us(one.chosen), 9) + right(_us(one.runner_up), 10) + " ", Tone.PLAIN),
        (left(_SHORT[source], SOURCE, glyphs), _TONES.get(source, Tone.GOOD)),
    ]


def _us(line: Evidence | None) -> str:
    """A time; one that is only predicted is marked with a tilde."""
    text = fmt.us(line.us if line is not None else None)
    return f"~{text}" if line is not None and line.source is Source.PRIOR and text != "-" else text


def deploy_detail(one: Deploys, width: int, glyphs: Glyphs) -> list[Line]:
    """The kernel, its schedule in full, and every line of evidence, the strongest first."""
    lines: list[Line] = [[(clean(f"{one.label} {one.shape} {one.kernel}", glyphs), Tone.HEAD)]]
    if one.chosen is None:
        return [*lines, *([(text, Tone.DIM)] for text in wrap(clean(one.why, glyphs), width))]
    lines += [[(text, Tone.ACCENT)] for text in wrap(clean(long_words(one.knobs), glyphs), width)]
    lines.append([(f"decided by {one.chosen.source}, {clean(one.gpu, glyphs)}", Tone.PLAIN)])
    lines += [_evidence(line, line is one.chosen, one.prior, width, glyphs) for line in one.lines]
    return lines


def _evidence(line: Evidence, chosen: bool, prior: str, width: int, glyphs: Glyphs) -> Line:
    """A prediction names the model; a pin that can't be built says why."""
    head = f"{glyphs.cursor if chosen else ' '} {left(_SHORT[line.source], SOURCE)}{right(_us(line), 9)} us  "
    said = f"not here: {line.illegal}" if line.illegal else short_words(line.schedule.as_dict())
    by = f" by {prior}" if line.source is Source.PRIOR else ""
    return [
        (head, Tone.PLAIN if chosen else Tone.DIM),
        (clean(said + by, glyphs), Tone.BAD if line.illegal else Tone.DIM),
    ]


class DeployList(ListPanel):
    """The kernels in the order of the run."""

    def __init__(self, view: View, *, id: str = "deploys") -> None:
        super().__init__(view, id=id)
        self.found: Sequence[Deploys] = ()
        self.wanted = 0
        self.said = ""
        self._laid: tuple[Sequence[Deploys], int, tuple[int, int, int], Names] | None = None

    def title(self) -> Line:
        return titled(recorded("Deploys now", self.view))

    def note(self) -> Line:
        read, wanted = len(self.found), self.wanted
        text = f"reading {read} of {wanted}" if read < wanted else fmt.plural(read, "kernel")
        return [(text, Tone.DIM)] if wanted else []

    def empty(self) -> str:
        return self.said or ("Reading the database" if self.wanted else "No kernel is known yet")

    def count(self) -> int:
        return len(self.found)

    def header(self, width: int) -> Line | None:
        kernel, shape, knobs = self._columns(width)[0]
        text = left("kernel", kernel) + " " + (left("shape", shape) + " " if shape else "")
        text += left("would run as", knobs, self.view.glyphs) + right("us", 9) + right("next us", 10)
        return [(text + " " + left("decided by", SOURCE), Tone.DIM)]

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        widths, names = self._columns(width)
        return [deploy_line(one, widths, self.view.glyphs, names) for one in self.found[start : start + count]]

    def _columns(self, width: int) -> tuple[tuple[int, int, int], Names]:
        """The widths of the columns, which follow what is listed, and the names."""
        if self._laid is None or self._laid[:2] != (self.found, width):
            names = Names.of((one.kernel, one.label, one.shape) for one in self.found)
            longest = max((len(short_words(one.knobs)) for one in self.found), default=0)
            self._laid = self.found, width, _widths(width, names, longest), names
        return self._laid[2], self._laid[3]

    def current(self) -> Deploys | None:
        return self.under_cursor(self.found)
