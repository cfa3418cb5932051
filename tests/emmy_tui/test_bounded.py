"""A grouping that can't win is shown as that, and as no failure."""

from __future__ import annotations

import pytest

from emmy_tui.text import ASCII, UNICODE, Glyphs, Tone, plain
from emmy_tui.view import View
from emmy_tui.why import why_lines
from emmy_tui.widgets.event_log import entries, entry_line
from emmy_tui.widgets.search_tree import node_mark
from engine.cli.structure import explored_text
from engine.events import GroupingScored, GroupingsExplored, NodeOpened, NodeState, NodeVisited
from engine.snapshot import Snapshot, apply

REASON = "can't win: its kernels take 95.5 us at least, those of the best grouping 65.0 us"


@pytest.fixture
def snapshot() -> Snapshot:
    """The outer tree of two groupings, one of which can't win."""
    seen = Snapshot()
    for name, parent, label in (("outer", "", ""), ("won", "outer", "SPLIT=no"), ("left", "outer", "SPLIT=yes")):
        apply(seen, NodeOpened(at=0.0, node=name, parent=parent, kernel="", label=label, prior=0.5, depth=bool(parent)))
    apply(seen, NodeVisited(at=1.0, node="won", visits=1, best_us=65.0, state=NodeState.MEASURED))
    apply(seen, NodeVisited(at=2.0, node="left", visits=1, best_us=None, state=NodeState.BOUNDED))
    apply(seen, GroupingScored(at=2.0, grouping="g2", sum_us=None, reason=REASON, bounded=True))
    apply(seen, GroupingsExplored(at=3.0, entered=2, failed=0, untried=0, exact=True, reason="every one", bounded=1))
    return seen


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_the_tree_and_its_why_say_so(snapshot: Snapshot, glyphs: Glyphs) -> None:
    text, tone = node_mark(snapshot.nodes["left"], best=False, running=False, glyphs=glyphs)
    assert text.endswith(" can't win")
    assert tone is Tone.DIM
    said = "\n".join(plain(line) for line in why_lines(View(snapshot=snapshot, node="left", glyphs=glyphs), 300))
    assert "Its score is number" in said


def test_the_log_and_the_end_count_it_apart_from_failures(snapshot: Snapshot) -> None:
    lines = [plain(entry_line(one, snapshot, 200, UNICODE)) for one in entries(list(snapshot.log))]
    assert any(f"grouping not tuned  {REASON}" in line for line in lines)
    assert any("2 groupings entered, 0 failed, 1 that can't win, 0 left untried" in line for line in lines)
    (explored,) = snapshot.explored.values()
    assert explored_text(explored) == "2 entered, 1 can't win, 0 left untried (every one)"
