"""Failure clusters by size, and one cluster in full: what its rows share, and every row."""

from __future__ import annotations

from collections.abc import Sequence

from textual.message import Message

from emmy_tui import format as fmt
from emmy_tui.knob_words import long_words, short_words, value_text
from emmy_tui.recorded import recorded
from emmy_tui.text import Glyphs, Line, Tone, clean, left, right, wrap
from emmy_tui.view import View
from emmy_tui.widgets.panel import ListPanel, titled
from engine.store import FailureCluster, ForbiddenCorner
from engine.store.failures import FailedRow, KernelFailures

LABEL = 10
SHARED = "they share, most others don't"


def _widths(width: int) -> tuple[int, int, int]:
    """Of kind, shared knobs and cause; 0 leaves a column out."""
    rest = width - 7 - 8 - 9
    if width < 100:
        kind = 0
        knobs = max(10, min(28, rest * 2 // 5))
    else:
        kind, knobs = 22, max(20, rest // 3)
    return kind, knobs, max(8, rest - knobs - 1 - (kind + 1 if kind else 0))


def header_line(width: int, glyphs: Glyphs) -> Line:
    kind, knobs, cause = _widths(width)
    text = right("n", 7) + " " + (left("kind", kind, glyphs) + " " if kind else "")
    text += (
        left("cause", cause, glyphs)
        + " "
        + left(SHARED if knobs >= len(SHARED) else "they share", knobs, glyphs)
        + right("lift", 7)
        + right("kernels", 9)
    )
    return [(text, Tone.DIM)]


def is_forbidden(cluster: FailureCluster, corners: Sequence[ForbiddenCorner]) -> bool:
    """Whether a corner in force holds all rows of the cluster."""
    shared = {knob.name: knob.value for knob in cluster.shared}
    keys = {row.kernel for row in cluster.rows}
    holding = [one for one in corners if one.holds(shared)]
    return bool(holding) and (any(not one.kernel_key for one in holding) or keys <= {one.kernel_key for one in holding})


def cluster_line(cluster: FailureCluster, width: int, glyphs: Glyphs, forbidden: bool = False) -> Line:
    kind, knobs, cause = _widths(width)
    shared = short_words({knob.name: knob.value for knob in cluster.shared}) or ("-" if cluster.count > 1 else "single")
    text = left(clean(", ".join(cluster.kinds), glyphs), kind, glyphs) + " " if kind else ""
    text += left(clean(cluster.cause, glyphs), cause, glyphs) + " "
    return [
        (("F " if forbidden else "  ") + right(fmt.count(cluster.count), 5) + " ", Tone.BAD),
        (text, Tone.PLAIN),
        (left(clean(shared, glyphs), knobs, glyphs), Tone.ACCENT),
        (right(f"{cluster.lift:.1f}{glyphs.times}" if cluster.shared else "-", 7), Tone.PLAIN),
        (right(str(len(cluster.kernels)), 9), Tone.PLAIN),
    ]


class ClusterList(ListPanel):
    """The largest cluster first."""

    class Opened(Message):
        """A person opened a cluster."""

    def __init__(self, view: View, *, id: str = "clusters") -> None:
        super().__init__(view, id=id)
        self.clusters: Sequence[FailureCluster] = ()
        self.corners: Sequence[ForbiddenCorner] = ()
        self.said = "Reading the database"

    def title(self) -> Line:
        return titled(recorded("Failures", self.view))

    def note(self) -> Line:
        forbidden = f"{len(self.corners)} forbidden, " if self.corners else ""
        rows = sum(cluster.count for cluster in self.clusters)
        if not self.clusters:
            return []
        shown = self.view.snapshot.failures
        of_runs = f", {fmt.count(shown)} of the shown runs" if shown != rows and self.view.snapshot.kernels else ""
        clusters = fmt.plural(len(self.clusters), "cluster")
        return [(f"{forbidden}{fmt.plural(rows, 'row')} in {clusters}{of_runs}", Tone.DIM)]

    def empty(self) -> str:
        return self.said

    def count(self) -> int:
        return len(self.clusters)

    def header(self, width: int) -> Line | None:
        return header_line(width, self.view.glyphs)

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        shown = self.clusters[start : start + count]
        return [cluster_line(one, width, self.view.glyphs, is_forbidden(one, self.corners)) for one in shown]

    def show(self, clusters: Sequence[FailureCluster]) -> None:
        before = self.current()
        self.clusters = clusters
        self.said = "No candidate failed"
        if before is not None:
            same = [n for n, one in enumerate(clusters) if one.cause == before.cause]
            alike = [n for n in same if clusters[n].kernels == before.kernels]
            self.cursor = next(iter([*alike, *same]), self.cursor)
        self.repaint()

    def forget(self, sentence: str) -> None:
        self.clusters, self.said = (), sentence
        self.repaint()

    def current(self) -> FailureCluster | None:
        return self.under_cursor(self.clusters)

    def action_select(self) -> None:
        if self.clusters:
            self.post_message(self.Opened())


def cluster_lines(cluster: FailureCluster, width: int, glyphs: Glyphs, opens: str) -> list[Line]:
    """All that is said of a cluster, before its rows; `opens` is the key that opens one."""
    shared = ", ".join(
        f"{knob.name}={value_text(knob.value)} ({fmt.ratio(knob.elsewhere)} of others)" for knob in cluster.shared
    )
    facts = (
        ("cause", cluster.cause, Tone.BAD),
        ("kind", ", ".join(cluster.kinds), Tone.PLAIN),
        ("share", shared, Tone.ACCENT),
        ("lift", f"{cluster.lift:.1f} times likelier with these values" if cluster.shared else "", Tone.PLAIN),
        ("note", cluster.note, Tone.PLAIN),
        *(("kernel", _kernel_text(one), Tone.PLAIN) for one in cluster.by_kernel),
    )
    lines: list[Line] = []
    for label, value, tone in facts:
        texts = [text for part in value.splitlines() for text in wrap(clean(part, glyphs), max(1, width - LABEL))]
        for number, text in enumerate(texts):
            lines.append([(left("" if number else label, LABEL), Tone.DIM), (text, tone)])
    return [*lines, [], [(f"{fmt.plural(cluster.count, 'row')}; {opens} opens one", Tone.HEAD)]]


def _kernel_text(one: KernelFailures) -> str:
    """A kernel with its rows and its own full cause, as the numbers in it differ from kernel to kernel."""
    return f"{one.label} {one.shape}, {fmt.plural(one.count, 'row')}, e.g. {one.example}"


def failed_line(row: FailedRow, width: int, glyphs: Glyphs) -> Line:
    label = min(20, max(8, width // 5))
    return [
        (left(clean(row.label or row.kernel, glyphs), label, glyphs) + " ", Tone.DIM),
        (left(row.regime, 8), Tone.DIM),
        (clean(long_words(row.schedule) if width >= 110 else short_words(row.schedule), glyphs), Tone.PLAIN),
    ]


class ClusterDetail(ListPanel):
    """One cluster; the cursor goes over its text and its rows, and enter opens a row."""

    class RowOpened(Message):
        """A person opened a failed row."""

        def __init__(self, row: FailedRow) -> None:
            super().__init__()
            self.row = row

    def __init__(self, view: View, *, id: str = "cluster") -> None:
        super().__init__(view, id=id)
        self._cluster: FailureCluster | None = None
        self._text: list[Line] = []
        self._width = 0

    def title(self) -> Line:
        return titled("Cluster")

    def show(self, cluster: FailureCluster | None) -> None:
        if cluster is not self._cluster:
            self.cursor = self.top = 0
            self._cluster, self._width = cluster, 0
        self.repaint()

    def _lay(self, width: int) -> None:
        if self._width != width:
            self._width = width
            opens = self.view.key("select")
            self._text = cluster_lines(self._cluster, width, self.view.glyphs, opens) if self._cluster else []

    def count(self) -> int:
        self._lay(self.inner_size.width)
        return len(self._text) + len(self._cluster.rows if self._cluster else ())

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        self._lay(width)
        ends = start + count
        first = max(0, start - len(self._text))
        failed = self._cluster.rows[first : max(0, ends - len(self._text))] if self._cluster else ()
        return [*self._text[start:ends], *(failed_line(row, width, self.view.glyphs) for row in failed)]

    def focus_rows(self) -> None:
        """Put the cursor on the first row."""
        self.focus()
        if self._cluster is not None:
            self.move_to(len(self._text))
            self.top = 0 if len(self._text) < self.inner_size.height else self.top
            self.repaint()

    def action_select(self) -> None:
        place = self.cursor - len(self._text)
        if self._cluster is not None and 0 <= place < len(self._cluster.rows):
            self.post_message(self.RowOpened(self._cluster.rows[place]))
