"""Each known way in which a tuner's search goes wrong, as a test that ours does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.search import Search, StopReason
from tests.search.toys import GridSpace, as_json, drive, hashed, hashed_scorer, knobs_of, no_opinion

KNOBS = {"BLOCK_M": (16, 32, 64), "BLOCK_N": (16, 32, 64), "NUM_WARPS": (1, 2, 4, 8)}
GOLDEN = Path(__file__).parent / "golden"


def test_points_that_were_only_proposed_do_not_poison_what_was_visited() -> None:
    search = Search(GridSpace(KNOBS), hashed_scorer, patience=36)
    lost = [search.ask() for _ in range(5)]
    for proposal in lost:
        assert proposal is not None
        search.withdraw(proposal)
    assert search.root.visits == search.root.in_flight == search.decided == 0
    again = drive(search, hashed)
    assert again[0].knobs == lost[0].knobs  # type: ignore[union-attr]
    assert len(again) == 36
    assert search.stopped is StopReason.EXHAUSTED


def test_the_incumbent_is_never_lost() -> None:
    search = Search(GridSpace(KNOBS), no_opinion, patience=36)
    best, seen = None, 0.0
    while (proposal := search.ask()) is not None:
        reward = None if search.decided % 3 == 2 else hashed(proposal.knobs)
        search.tell(proposal, reward)
        if reward is not None and reward > seen:
            best, seen = proposal, reward
        assert search.best is not None
        assert search.best.proposal is best
        assert search.best.reward == search.root.best_reward == seen


def test_a_score_that_saturates_does_not_tie() -> None:
    """Speeds e^600 apart: all but one vanish as a share of the best, and the order is still the prior's."""
    wanted = (32, 64, 16)
    search = Search(
        GridSpace({"BLOCK_M": KNOBS["BLOCK_M"]}),
        lambda path, options: [10.0 ** (300 - 300 * wanted.index(int(o.knobs[0][1]))) for o in options],
    )
    assert [p.knobs["BLOCK_M"] for p in drive(search, lambda knobs: 1.0)] == list(wanted)


def test_a_better_timing_of_a_rival_replaces_the_scale_of_every_score() -> None:
    """Q is a share of the best seen now; a share of an old best would keep a stale label attractive."""
    search = Search(GridSpace(KNOBS), no_opinion)
    first, second = search.ask(), search.ask()
    assert first
    assert second
    search.tell(first, 1.0)
    assert search.explain(first.node).q == 1.0
    search.tell(second, 4.0)
    assert search.explain(first.node).q == 0.25
    assert search.explain(second.node).q == 1.0


def test_every_candidate_failing_is_seen_at_once() -> None:
    search = Search(GridSpace(KNOBS), no_opinion, patience=50)
    told = 0
    while (proposal := search.ask()) is not None and search.failures_before_success < 8:
        search.tell(proposal, None)
        told += 1
    assert told == search.failures_before_success == 8
    assert search.best is None
    assert search.root.best_reward is None


def test_failures_after_a_success_are_not_counted_as_hopeless() -> None:
    search = Search(GridSpace(KNOBS), no_opinion)
    drive(search, lambda knobs: 1.0 if search.decided == 2 else None)
    assert search.failures_before_success == 2


@pytest.mark.parametrize("window", [1, 16])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_small_space_runs_out_cleanly(size: int, window: int) -> None:
    search = Search(GridSpace({"A": range(size)}), no_opinion, patience=50)
    assert len(drive(search, lambda knobs: 1.0, window)) == size
    assert search.stopped is StopReason.EXHAUSTED
    assert search.ask() is None
    assert search.root.exhausted


@pytest.mark.parametrize("scorer", [no_opinion, hashed_scorer])
def test_a_narrow_good_basin_is_reached_past_a_broad_poor_one(scorer: object) -> None:
    """Two of 216 points are good, where BLOCK_M=64 looks bad at almost every other point."""
    knobs = {
        "BLOCK_M": (16, 32, 64),
        "BLOCK_N": (16, 32, 64, 128, 256, 512),
        "BLOCK_K": (16, 32, 64),
        "W": (1, 2, 4, 8),
    }

    def landscape(point: dict[str, int]) -> float:
        if point["BLOCK_M"] == 64:
            return 10.0 if point["BLOCK_N"] == 256 and point["BLOCK_K"] == 16 and point["W"] <= 2 else 0.2
        return 1.0 + 0.1 * hashed(point)

    search = Search(GridSpace(knobs), scorer, patience=100)  # type: ignore[arg-type]
    drive(search, landscape, window=16)  # type: ignore[arg-type]
    assert search.best is not None
    assert search.best.reward == 10.0 or search.stopped is StopReason.EXHAUSTED


def golden_tree(name: str) -> dict[str, object]:
    """Two searches whose every number is kept: one by value alone, one with prior, failures, dead ends, window."""
    if name == "plain":
        search = Search(GridSpace({"BLOCK_M": (16, 32, 64), "NUM_WARPS": (1, 2)}), no_opinion, patience=4)
        asked = drive(search, hashed)
    else:
        space = GridSpace(KNOBS, illegal=lambda knobs: len(knobs) == 3 and knobs["BLOCK_M"] * knobs["BLOCK_N"] > 1024)
        search = Search(space, hashed_scorer, patience=12)
        asked = drive(search, lambda knobs: None if hashed(knobs) < 0.3 else hashed(knobs), window=4)
    return {
        "asked": [" ".join(str(option) for option in p.path) for p in asked],
        "stopped": str(search.stopped),
        "since_best": search.since_best,
        "dead_ends": search.dead_ends,
        "tree": as_json(search.root),
    }


@pytest.mark.parametrize("name", ["plain", "window"])
def test_the_whole_tree_is_the_recorded_one(name: str) -> None:
    """A change of formula or order shows here. To accept one: `python -m tests.search.test_traps`."""
    assert golden_tree(name) == json.loads((GOLDEN / f"{name}.json").read_text())


def test_any_process_and_any_hash_seed_walk_the_same_path() -> None:
    code = "import json; from tests.search.test_traps import golden_tree; print(json.dumps(golden_tree('window')))"
    root = Path(__file__).parents[2]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert outputs == {json.dumps(golden_tree("window")) + "\n"}


def test_a_proposal_names_the_knobs_of_its_path() -> None:
    proposal = Search(GridSpace(KNOBS), no_opinion).ask()
    assert proposal is not None
    assert proposal.knobs == knobs_of(proposal.path) == knobs_of(proposal.node.path)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for golden in ("plain", "window"):
        (GOLDEN / f"{golden}.json").write_text(json.dumps(golden_tree(golden), indent=1) + "\n")
