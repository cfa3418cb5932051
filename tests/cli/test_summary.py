"""The end block and its JSON object."""

from __future__ import annotations

import json
from pathlib import Path

from engine.cli.output import json_text
from engine.cli.summary import summary_lines, summary_object
from engine.events import Event
from engine.snapshot import Snapshot, apply


def folded(events: list[Event]) -> Snapshot:
    snapshot = Snapshot()
    for event in events:
        apply(snapshot, event)
    return snapshot


def test_the_end_block(events: list[Event]) -> None:
    assert summary_lines(folded(events), Path("/data/my tune.db"), None) == [
        "measured 4, cached 1, failed 1 in 3 min 12 s",
        "",
        "kernel                      count  best us  schedule",
        "matmul 512x512x512 float32      1    13.10  "
        "BLOCK_K=32 BLOCK_M=64 BLOCK_N=64 NUM_STAGES=3 NUM_WARPS=4 PRECISION=ieee",
        "",
        "sum        13.10 us",
        "assembled  13.36 us (+2.0 % against the sum of its kernels)",
        "wall time  searching 1.0 %, GPU idle 25 %",
        "",
        "database   '/data/my tune.db'",
        "next       emmy-tui '/data/my tune.db'",
        "           emmy eval variants --db '/data/my tune.db'",
    ]


def test_the_end_block_fits_a_terminal(events: list[Event]) -> None:
    lines = summary_lines(folded(events), Path("x.db"), 80)
    assert max(map(len, lines)) <= 80


def test_the_end_block_of_a_run_that_did_not_get_far(events: list[Event]) -> None:
    lines = summary_lines(folded(events[:2]), Path("x.db"), 80)
    assert lines[0] == "measured 0, cached 0, failed 0"
    assert "database   x.db" in lines


def test_the_object(events: list[Event]) -> None:
    found = json.loads(json_text(summary_object(folded(events), Path("x.db"), None)))
    assert {name: found[name] for name in ("measured", "cached", "failed", "best_us", "sum_us", "assembled_us")} == {
        "measured": 4,
        "cached": 1,
        "failed": 1,
        "best_us": 13.1,
        "sum_us": 13.1,
        "assembled_us": 13.362,
    }
    assert (found["search_share"], found["gpu_idle_share"], found["state"]) == (0.01, 0.25, "finished")
    (kernel,) = found["kernels"]
    assert (kernel["key"], kernel["best_us"], kernel["ranking_us"]) == ("a" * 24, 13.1, 13.5)


def test_the_object_of_a_failed_run_has_the_same_names(events: list[Event]) -> None:
    whole = summary_object(folded(events), Path("x.db"), None)
    failed = summary_object(folded(events[:6]), Path("x.db"), "the GPU is gone")
    assert failed.keys() == whole.keys()
    assert failed["failure"] == "the GPU is gone"
    assert failed["sum_us"] is None
