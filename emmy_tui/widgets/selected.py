"""The tree node under the cursor, in full: its knobs, its numbers, its failure, and how its siblings compare."""

from __future__ import annotations

from emmy_tui import format as fmt
from emmy_tui.best import best_path, deploy_below, deploy_text, node_path
from emmy_tui.text import Glyphs, Line, Tone, clean, left, right, width_of, wrap
from emmy_tui.view import View
from emmy_tui.widgets.panel import Panel, titled
from emmy_tui.widgets.search_tree import node_mark, node_title
from engine.events import Measured
from engine.snapshot import KernelRow, NodeRow, Snapshot
from engine.vocabulary import Regime

LABEL = 12


def last_measured(snapshot: Snapshot, node: str, regime: str = "") -> Measured | None:
    """The newest measurement of a node that the log still holds, in a regime or in any."""
    of_node = (event for event in reversed(snapshot.log) if isinstance(event, Measured) and event.node == node)
    return next((event for event in of_node if regime in ("", event.regime)), None)


def _pair(label: str, value: str, tone: Tone = Tone.PLAIN) -> Line:
    return [(left(label, LABEL), Tone.DIM), (value, tone)]


def selected_lines(view: View, width: int, height: int) -> list[Line]:
    """What there is to say of the view's node, most important first."""
    snapshot, glyphs = view.snapshot, view.glyphs
    path = node_path(snapshot, view.node)
    if not path:
        return [[("No node selected", Tone.DIM)]]
    node = path[-1]
    best = node.node in best_path(snapshot, path[0].node)
    running = node.node in snapshot.running
    mark, tone = node_mark(node, best, running, glyphs)
    knobs = clean(" ".join(row.label for row in path[1:]) or node_title(node, snapshot), glyphs)
    lines: list[Line] = [[(row, Tone.HEAD)] for row in wrap(knobs, width)]
    if mark:
        lines.append([(mark, tone)])
    lines += _numbers(view, node, path[0])
    if node.failure:
        lines.append(_pair("failure", clean(node.failure, glyphs), Tone.BAD))
        lines += [[(row, Tone.PLAIN)] for row in wrap(clean(node.cause, glyphs), width)]
    parent = path[-2] if len(path) > 1 else None
    if parent is not None:
        lines += [[], *_siblings(view, node, parent, width)]
    return lines[:height]


def _numbers(view: View, node: NodeRow, root: NodeRow) -> list[Line]:
    lines: list[Line] = []
    event = last_measured(view.snapshot, node.node, Regime.RANKING)
    if event is not None and event.us is not None:
        spread = f"  {fmt.us(event.low_us)} to {fmt.us(event.high_us)}" if event.low_us and event.high_us else ""
        cached = "  cached" if event.cached else ""
        lines.append(_pair(event.regime, f"{fmt.us(event.us)} us{spread}{cached}"))
    regime = "by ranking time" if node.kernel else "as a sum"
    lines.append(_pair("best below", f"{fmt.us(node.best_us)} us {regime}" if node.best_us is not None else "-"))
    if deployed := deploy_text(view.snapshot, node):
        lines.append(_pair("deploy", deployed))
    lines.append(_pair("visits", f"{node.visits} of {root.visits} ({fmt.share(node.visits, root.visits)})"))
    lines.append(_pair("prior", f"{node.prior:.2f} of its best sibling"))
    kernel = view.snapshot.kernels.get(node.kernel)
    if kernel is not None and kernel.floor_us is not None:
        below = deploy_below(view.snapshot, node)
        us, regime = (below[0].us, Regime.DEPLOY) if below else (node.best_us, Regime.RANKING)
        lines.append(_pair("floor", floor_sentence(kernel, us, regime)))
    return lines


def floor_sentence(kernel: KernelRow, us: float | None, regime: str) -> str:
    """What a kernel takes at the rates that were measured of the GPU, by which of them, and how far the best time of a
    regime is from it. Below 1 where what a kernel mostly reads is held against a copy's rate."""
    assert kernel.floor_us is not None
    floor = f"{fmt.us(kernel.floor_us)} us by {kernel.bound or 'the GPU'}"
    if us is None or not kernel.floor_us:
        return floor
    times = us / kernel.floor_us
    copied = ", a copy's rate where no reading was measured" if times < 1 and kernel.bound == "memory" else ""
    return f"{floor}; {fmt.us(us)} us by {regime} time is {times:.2f} times that{copied}"


def _siblings(view: View, node: NodeRow, parent: NodeRow, width: int) -> list[Line]:
    """Siblings by best time, as bars: shorter is faster."""
    glyphs = view.glyphs
    rows = [view.snapshot.nodes[child] for child in parent.children]
    rows.sort(key=lambda row: (row.best_us is None, row.best_us or 0.0))
    slowest = max((row.best_us for row in rows if row.best_us is not None), default=None)
    longest = max((width_of(clean(row.label, glyphs)) for row in rows), default=0)
    name = min(max(12, longest), max(12, (width - 18) * 3 // 4))
    room = max(4, width - 2 - name - 9 - 7)
    lines: list[Line] = [[(left("Siblings", name + 1 + room) + right("search us", 10) + right("prior", 6), Tone.DIM)]]
    for row in rows:
        lines.append(_sibling(row, row is node, slowest, name, room, glyphs))
    return lines


def _sibling(row: NodeRow, own: bool, slowest: float | None, name: int, room: int, glyphs: Glyphs) -> Line:
    filled = round(room * row.best_us / slowest) if row.best_us is not None and slowest else 0
    tone = Tone.ACCENT if own else Tone.DIM
    return [
        (f"{glyphs.cursor if own else ' '} " + left(clean(row.label, glyphs), name, glyphs) + " ", Tone.PLAIN),
        (left(glyphs.bar * min(room, filled), room), tone),
        (right(fmt.us(row.best_us), 8) + right(f"{row.prior:.2f}", 6), Tone.PLAIN),
    ]


class Selected(Panel):
    """Follows the tree's cursor."""

    def title(self) -> Line:
        return titled("Selected")

    def lines(self, width: int, height: int) -> list[Line]:
        return selected_lines(self.view, width, height)
