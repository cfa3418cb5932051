"""Why the search took or passed over a node: the terms of its rule, as far as the events tell them, and the evidence.

The rule is score = Q + c P sqrt(N_parent + 1) / (1 + N). Its terms come from the snapshot: P is the node's prior, N its
visits, Q the best time of the tree over the best time below the node. Candidates in flight count as visits for the
search and are not in the events, so a score shown while a run is on is the one without them.

The search goes by ranking times; what deploys is chosen by deploy times. Each number here says which of them it is.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from emmy_tui import format as fmt
from emmy_tui.best import best_path, deploy_text, node_path, two_bests
from emmy_tui.text import Line, Tone, clean, left, right, wrap
from emmy_tui.view import View
from emmy_tui.widgets.search_tree import node_title
from emmy_tui.widgets.selected import last_measured
from engine.search import puct
from engine.snapshot import NodeRow, Snapshot

EXPLORATION = math.sqrt(2)
"""The c of a run that names no other."""
PRIOR_DIGITS = 9
"""Priors that agree in so many digits are one."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one node among its siblings. `rank` is its place by prior, from 1, which `tied` siblings share."""

    node: NodeRow
    q: float
    u: float
    score: float
    rank: int
    tied: int = 1

    @property
    def place(self) -> str:
        """The rank, marked where it is shared."""
        return f"={self.rank}" if self.tied > 1 else str(self.rank)


def sibling_terms(snapshot: Snapshot, node: str) -> list[Terms]:
    """A node and its siblings, the highest score first; empty for a root, which nothing chooses."""
    row = snapshot.nodes.get(node)
    parent = snapshot.nodes.get(row.parent) if row is not None else None
    if row is None or parent is None:
        return []
    root = parent
    while root.parent in snapshot.nodes:
        root = snapshot.nodes[root.parent]
    siblings = [snapshot.nodes[child] for child in parent.children]
    priors = [round(one.prior, PRIOR_DIGITS) for one in siblings]
    alike = Counter(priors)
    ranks = {prior: 1 + sum(alike[other] for other in alike if other > prior) for prior in alike}
    terms = [_terms(one, root, parent, ranks[prior], alike[prior]) for one, prior in zip(siblings, priors, strict=True)]
    return sorted(terms, key=lambda one: (-one.score, one.rank))


def _terms(row: NodeRow, root: NodeRow, parent: NodeRow, rank: int, tied: int) -> Terms:
    q = root.best_us / row.best_us if root.best_us and row.best_us else 0.0
    score = puct(q, row.prior, parent.visits, row.visits, EXPLORATION)
    return Terms(row, q, score - q, score, rank, tied)


def why_lines(view: View, width: int, node_name: str = "") -> list[Line]:
    """What there is to say of a node, else of the view's, in lines of at most `width` cells."""
    snapshot, glyphs = view.snapshot, view.glyphs
    path = node_path(snapshot, node_name or view.node)
    if not path:
        return [[("No node is selected: put the cursor on a line of the tree.", Tone.PLAIN)]]
    node = path[-1]
    knobs = clean(" ".join(row.label for row in path[1:]) or node_title(node, snapshot), glyphs)
    lines: list[Line] = [[(row, Tone.HEAD)] for row in wrap(knobs, width)]
    terms = sibling_terms(snapshot, node.node)
    lines += _verdict(view, node, terms, width)
    lines += [[], *_evidence(view, node, width)]
    below = _table(view, node, terms, width) if terms else _way(view, node, width)
    return [*lines, [], *below] if below else lines


def _came_to(path: list[NodeRow], own: Terms, siblings: int) -> str:
    """Of a node that was tried: what it led to, and its place by the prior: that says why, a score what is next."""
    us, best = own.node.best_us, path[0].best_us
    if us is None or not own.node.visits:
        return ""
    how = "by ranking time" if own.node.kernel else "as a sum"
    beside = ", the best of the tree" if us == best else f"; the tree's best is {fmt.us(best)}"
    return f"It led to {fmt.us(us)} us {how}{beside}. {_by_prior(own, siblings)}"


def _by_prior(own: Terms, siblings: int) -> str:
    """Where the prior put a node among its siblings."""
    if own.tied == siblings > 1:
        return f"The prior told nothing apart: all {siblings} siblings have the same."
    shared = own.tied - 1
    others = f", level with {shared} other{'s' if shared > 1 else ''}" if shared else ""
    return f"The prior put it at number {own.rank} of {siblings}{others}."


def _deployed(snapshot: Snapshot, node: NodeRow) -> list[str]:
    """What it came to by deploy time; on the way to what deploys also the search's own best, if that is another."""
    told = deploy_text(snapshot, node)
    said = [f"By deploy time it led to {told}."] if told else []
    root = node_path(snapshot, node.node)[0].node
    kernel = snapshot.kernels.get(node.kernel)
    if kernel is not None and node.node in best_path(snapshot, root) and (other := two_bests(kernel)):
        said.append(f"{other}.")
    return said


def _verdict(view: View, node: NodeRow, terms: list[Terms], width: int) -> list[Line]:
    came_to = ""
    if not terms:
        led = "what deploys" if node.kernel else "the smallest sum"
        text = f"The root of a tree: every search begins here. Below: the choices that led to {led}."
        if node.best_us is None:
            text = "The root of a tree: every search begins here."
    else:
        path = node_path(view.snapshot, node.node)
        place = next(place for place, one in enumerate(terms, 1) if one.node is node)
        own = terms[place - 1]
        first = terms[0]
        came_to = _came_to(path, own, len(terms))
        text = f"Its score is number {place} of {len(terms)} siblings: Q {own.q:.3f} + U {own.u:.3f} = {own.score:.3f}."
        if place > 1:
            term = "Q, what was measured" if first.q - own.q >= first.u - own.u else "U, the prior and few visits"
            text += f" {clean(first.node.label, view.glyphs)} is ahead by {term}."
        elif node.state in ("exhausted", "failed", "measured"):
            text += f" It is {node.state}, so nothing is left to try below it."
        elif node.state == "bounded":
            text += " It can't win whatever is measured below it, so that nothing was."
        else:
            text += " The next candidate goes this way, as long as those in flight don't change it."
    told = [came_to, *_deployed(view.snapshot, node), text]
    return [[(row, Tone.PLAIN)] for said in told if said for row in wrap(clean(said, view.glyphs), width)]


def _way(view: View, root: NodeRow, width: int) -> list[Line]:
    """Each choice on the way from the root to its best, with the place that the prior gave it among its siblings."""
    snapshot, glyphs = view.snapshot, view.glyphs
    name = max(8, width - 35)
    numbers = (("prior", 7), ("rank", 9), ("visits", 8), ("search us", 10))
    lines: list[Line] = [[(left("  choice", name) + "".join(right(text, size) for text, size in numbers), Tone.DIM)]]
    for name_of in best_path(snapshot, root.node)[1:]:
        found = snapshot.nodes[name_of]
        siblings = sibling_terms(snapshot, found.node)
        own = next(one for one in siblings if one.node is found)
        cells = right(f"{found.prior:.2f}", 7) + right(f"{own.place} of {len(siblings)}", 9)
        cells += right(fmt.count(found.visits), 8) + right(fmt.us(found.best_us), 10)
        lines.append([(left(f"  {clean(found.label, glyphs)}", name, glyphs) + cells, Tone.PLAIN)])
    return lines if len(lines) > 1 else []


def _table(view: View, node: NodeRow, terms: list[Terms], width: int) -> list[Line]:
    glyphs = view.glyphs
    name = max(8, width - 46)
    numbers = (("score", 8), ("Q", 7), ("U", 7), ("prior", 7), ("rank", 5), ("visits", 8))
    head = left("  option", name) + "".join(right(text, size) for text, size in numbers)
    lines: list[Line] = [[(head, Tone.DIM)]]
    for one in terms:
        own = one.node is node
        cells = (
            right(f"{one.score:.3f}", 8)
            + right(f"{one.q:.3f}", 7)
            + right(f"{one.u:.3f}", 7)
            + right(f"{one.node.prior:.2f}", 7)
            + right(one.place, 5)
            + right(fmt.count(one.node.visits), 8)
        )
        label = left(f"{glyphs.cursor if own else ' '} {clean(one.node.label, glyphs)}", name, glyphs)
        lines.append([(label + cells, Tone.ACCENT if own else Tone.PLAIN)])
    return lines


def _evidence(view: View, node: NodeRow, width: int) -> list[Line]:
    event = last_measured(view.snapshot, node.node)
    how = "by ranking time" if node.kernel else "as a sum"
    facts: list[tuple[str, str]] = [("best below", f"{fmt.us(node.best_us)} us {how}" if node.best_us else "none yet")]
    if deployed := deploy_text(view.snapshot, node):
        facts.append(("deploy", deployed))
    if event is not None:
        source = "the database" if event.cached else "the GPU"
        result = f"{fmt.us(event.us)} us" if event.us is not None else f"{event.status} {event.failure}".strip()
        facts.append(("last visit", f"{fmt.clock(event.at)}, {event.regime}, from {source}: {result}"))
    facts.append(("state", str(node.state)))
    if (corner := forbidden_corner(view.snapshot, node.node)) is not None:
        facts.append(("forbidden", f"{corner}: nothing with all of these values is proposed (Failures tab, C)"))
    run, kernel = view.snapshot.run, view.snapshot.kernels.get(node.kernel)
    if run is not None:
        facts.append(("prior of", kernel.prior if kernel is not None and kernel.prior else run.prior))
    if node.failure:
        facts.append(("failure", f"{node.failure}: {node.cause}"))
    rows: list[Line] = []
    for label, value in facts:
        for number, text in enumerate(wrap(clean(value, view.glyphs), max(1, width - 12))):
            rows.append([(left("" if number else label, 12), Tone.DIM), (text, Tone.PLAIN)])
    return rows


def forbidden_corner(snapshot: Snapshot, node: str) -> str | None:
    """The forbidden corner that the node lies in, if it lies in one."""
    path = node_path(snapshot, node)
    row = snapshot.kernels.get(path[-1].kernel) if path else None
    fixed = {word for one in path for word in one.label.split()}
    return next((corner for corner in row.forbidden if set(corner.split()) <= fixed), None) if row else None
