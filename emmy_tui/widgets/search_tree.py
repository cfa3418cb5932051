"""The search tree while it grows: which options were tried how often, what they gave, and what was passed over.

`search us` is the number that the search goes by: the best ranking time below a node, in the outer tree the best sum.
The star leads to what deploys, which may be another candidate.
"""

from __future__ import annotations

from emmy_tui import format as fmt
from emmy_tui.best import best_path
from emmy_tui.known import unsearched
from emmy_tui.text import Glyphs, Line, Tone, clean, crop, left, line_width, right, width_of
from emmy_tui.tree_index import ROOT, Key, TreeIndex, TreeLine
from emmy_tui.view import View
from emmy_tui.widgets.kernel_name import kernel_name
from emmy_tui.widgets.panel import ListPanel, titled
from engine.events import NodeState
from engine.snapshot import NodeRow, Snapshot

MARK = 11
VISITS = 7
BEST = 8
PRIOR = 5
BAR_FROM = 84
FRAMING = 5
"""Blanks around title and note, and the rule between them."""


def node_title(node: NodeRow, snapshot: Snapshot) -> str:
    """What a node is called: its option; at a root, the kernel or the outer search."""
    if node.parent and node.parent in snapshot.nodes:
        return node.label
    if not node.kernel:
        return node.label or "groupings"
    kernel = snapshot.kernels.get(node.kernel)
    return kernel.label if kernel else node.label or node.kernel


def node_mark(node: NodeRow, best: bool, running: bool, glyphs: Glyphs) -> tuple[str, Tone]:
    """Glyph and word of a node. A closed node speaks for what is below it."""
    if running or node.state == NodeState.RUNNING:
        return f"{glyphs.running} running", Tone.BUSY
    if best:
        return f"{glyphs.best} best", Tone.GOOD
    if node.state == NodeState.FAILED:
        return f"{glyphs.failed} failed", Tone.BAD
    if node.state == NodeState.EXHAUSTED:
        return f"{glyphs.exhausted} exhausted", Tone.DIM
    if node.state == NodeState.BOUNDED:
        return f"{glyphs.exhausted} can't win", Tone.DIM
    return "", Tone.DIM


def header_line(width: int) -> Line:
    numbers = f" {left('mark', MARK)}{right('visits', VISITS)}{right('search us', BEST + 2)}{right('prior', PRIOR + 2)}"
    bar = "  share of visits" if width >= BAR_FROM else ""
    bar_width = _bar_width(width)
    head = left("option", max(4, width - len(numbers) - (bar_width + 2 if bar_width else 0)))
    return [(head + numbers + left(bar, bar_width + 2 if bar_width else 0), Tone.DIM)]


def _bar_width(width: int) -> int:
    return min(24, max(6, (width - 60) // 2)) if width >= BAR_FROM else 0


def node_line(
    title: str,
    opened: bool | None,
    depth: int,
    mark: tuple[str, Tone],
    node: NodeRow,
    whole: int,
    width: int,
    glyphs: Glyphs,
) -> Line:
    """One node. `whole` is the visits that its bar is a share of."""
    bar_width = _bar_width(width)
    fixed = 1 + MARK + VISITS + BEST + 2 + PRIOR + 2 + (bar_width + 2 if bar_width else 0)
    fold = " " if opened is None else glyphs.opened if opened else glyphs.closed
    tried = node.visits > 0
    head = left("  " * min(depth, max(0, width - fixed - 12) // 2) + f"{fold} {title}", max(4, width - fixed), glyphs)
    best = fmt.us(node.best_us)
    spans: Line = [(head + " ", Tone.PLAIN if tried or opened else Tone.DIM), (left(mark[0], MARK, glyphs), mark[1])]
    spans.append((right(fmt.count(node.visits), VISITS), Tone.PLAIN if tried else Tone.DIM))
    spans.append((right(best, BEST + 2), mark[1] if mark[1] is Tone.GOOD else Tone.PLAIN))
    spans.append((right(f"{node.prior:.2f}", PRIOR + 2), Tone.DIM))
    if bar_width:
        filled = round(bar_width * node.visits / whole) if whole else 0
        spans.append(("  " + left(glyphs.bar * min(bar_width, filled), bar_width), Tone.ACCENT))
    return spans


class SearchTree(ListPanel):
    """All trees of the run: the outer one and one a kernel. The cursor belongs to a node, not to a line."""

    def __init__(self, view: View, *, id: str = "tree") -> None:
        super().__init__(view, id=id)
        self._snapshot = view.snapshot
        self.index = TreeIndex(view.snapshot)
        self.following = True
        self._key: Key | None = None
        self._best: list[str] = []
        self._under_way: set[str] = set()

    def title(self) -> Line:
        """The name is cut before what stands at the right: the patience, and whether the cursor follows."""
        kernel, glyphs = self.view.kernel, self.view.glyphs
        room = self.inner_size.width - line_width(self.note()) - FRAMING
        name = clean(kernel_name(kernel, self.view.snapshot), glyphs) if kernel else ""
        words = "Search tree" if width_of(f"Search tree {name}") <= room else "Tree"
        return titled(words, crop(name, max(0, room - len(words) - 1), glyphs))

    def note(self) -> Line:
        kernel = self.view.kernel
        follow = [(f"follow {'on' if self.following else 'off'} {self.view.glyphs.dot} f", Tone.DIM)]
        if kernel is None or not kernel.patience:
            return follow
        return [(f"patience {kernel.since_best}/{kernel.patience}  ", Tone.DIM), *follow]

    def empty(self) -> str:
        return unsearched(self.view.kernel) or "No search tree yet"

    def count(self) -> int:
        return len(self.index)

    def header(self, width: int) -> Line | None:
        return header_line(width)

    def update(self, touched: set[str]) -> None:
        """Take in what changed since the last call; goes along with the run while following."""
        snapshot = self.view.snapshot
        if snapshot is not self._snapshot:
            self._snapshot, self.index, self._key = snapshot, TreeIndex(snapshot), None
        self.index.touch(touched)
        self._note_paths()
        if self.following:
            self._follow()
        self._settle()

    def _note_paths(self) -> None:
        snapshot = self.view.snapshot
        self._best = best_path(snapshot, self.kernel_root())
        self._under_way = {name for node in snapshot.running for name in self.index.path(node)}

    def kernel_root(self) -> str:
        """The root of the shown kernel's tree, or ""."""
        kernel = self.view.kernel
        if kernel is None:
            return ROOT
        nodes = self.view.snapshot.nodes
        return next((root for root in self.view.snapshot.roots if nodes[root].kernel == kernel.kernel), ROOT)

    def _follow(self) -> None:
        running = [item.node for item in self.view.snapshot.running.values() if self._of_kernel(item.kernel)]
        current = self.index.path(running[-1]) if running else []
        self.index.follow({*self._best[:-1], *current[:-1]})
        target = current[-1] if current else self._best[-1] if self._best else self.kernel_root()
        if target:
            self._key = Key(target)

    def _of_kernel(self, kernel: str) -> bool:
        shown = self.view.kernel
        return shown is not None and kernel == shown.kernel

    def _settle(self) -> None:
        """Find the cursor's line again; while a person steers, keep it at the same height on the screen."""
        key = self.index.nearest(self._key) if self._key else None
        position = self.index.position(key) if key else None
        if position is None:
            position = min(self.cursor, max(0, len(self.index) - 1))
            found = self.index.lines(position, 1)
            self._key = found[0].key if found else None
        elif not self.following:
            self._key = key
            self.top += position - self.cursor
        self.cursor = position
        if self.following:
            self.reveal()
        self.view.node = self._key.node if self._key else ""

    def lines(self, width: int, height: int) -> list[Line]:
        if self.following:
            self.reveal()  # the panel may have another height than when the run moved last
        return super().lines(width, height)

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        best, running = set(self._best), self._under_way
        return [self._line(line, best, running, width) for line in self.index.lines(start, count)]

    def _line(self, line: TreeLine, best: set[str], running: set[str], width: int) -> Line:
        glyphs, nodes = self.view.glyphs, self.view.snapshot.nodes
        node = nodes[line.key.node]
        if line.key.untried:
            text = f"{glyphs.ellipsis} {line.hidden} untried (prior {glyphs.at_most} {line.hidden_prior:.2f})"
            fold = glyphs.opened if line.opened else glyphs.closed
            return [(crop("  " * line.depth + f"{fold} {text}", width, glyphs), Tone.DIM)]
        silent = line.opened is True
        mark = node_mark(node, not silent and node.node in best, not silent and node.node in running, glyphs)
        title = clean(node_title(node, self.view.snapshot), glyphs)
        return node_line(title, line.opened, line.depth, mark, node, self._whole(node), width, glyphs)

    def _whole(self, node: NodeRow) -> int:
        nodes = self.view.snapshot.nodes
        while node.parent in nodes:
            node = nodes[node.parent]
        return node.visits

    def line_key(self) -> Key | None:
        return self._key

    def show_kernel(self) -> None:
        """Open the shown kernel's tree and put the cursor on its root."""
        root = self.kernel_root()
        if root:
            self._free()
            self.index.open(root)
            self._key = Key(root)
            self.top = self.index.position(self._key) or 0
            self.cursor = self.top
            self._settle()

    def follow(self, on: bool) -> None:
        if on:
            self.following = True
        else:
            self._free()
        self.update(set())

    def _free(self) -> None:
        """Stop following and leave the tree as it is seen."""
        if self.following:
            self.following = False
            self.index.keep()

    def moved(self) -> None:
        self._free()
        found = self.index.lines(self.cursor, 1)
        self._key = found[0].key if found else None
        self.view.node = self._key.node if self._key else ""

    def scrolled(self, by: int) -> None:
        self._free()
        super().scrolled(by)

    def action_select(self) -> None:
        key = self._key
        if key is None:
            return
        if key.untried:
            self._change(key, not self.index.lists_untried(key.node))
        else:
            self._change(key, not self.index.is_open(key.node))

    def action_unfold(self) -> None:
        key = self._key
        if key is None:
            return
        opened = self.index.lists_untried(key.node) if key.untried else self.index.is_open(key.node)
        if opened:
            self.move_to(self.cursor + 1)
        else:
            self._change(key, True)

    def action_fold(self) -> None:
        key = self._key
        if key is None:
            return
        opened = self.index.lists_untried(key.node) if key.untried else self.index.is_open(key.node)
        if opened:
            self._change(key, False)
            return
        parent = key.node if key.untried else self.index.parent(key.node)
        position = self.index.position(Key(parent)) if parent != ROOT else None
        if position is not None:
            self.move_to(position)

    def _change(self, key: Key, opened: bool) -> None:
        self._free()
        if key.untried:
            self.index.list_untried(key.node, opened)
        elif not opened:
            self.index.close(key.node)
        elif self.view.snapshot.nodes[key.node].children:
            self.index.open(key.node)
        self._settle()
        self.repaint()
        self.post_message(self.Moved(self))
