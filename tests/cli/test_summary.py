"""The end block and its JSON object."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.cli.output import json_text
from engine.cli.programs import programs_of
from engine.cli.summary import summary_lines, summary_object
from engine.events import (
    Assembled,
    Compared,
    Event,
    GroupingEntered,
    GroupingScored,
    Health,
    KernelFinished,
    KernelFound,
    RunFinished,
    RunStarted,
    StateChanged,
)
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
        "BLOCK_M=64 BLOCK_N=64 BLOCK_K=32 PRECISION=ieee NUM_WARPS=4 NUM_STAGES=3",
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


def kernel(key: str, label: str, us: float, count: int = 1) -> list[Event]:
    """A kernel from found to finished."""
    about = {"label": label, "family": "pointwise", "shape": "64x64 float32", "flops": 1, "bytes_moved": 1}
    end = {"state": "done", "reason": "", "best_us": us, "best_schedule": "NUM_WARPS=4 BLOCK=1024"}
    return [KernelFound(at=2.0, kernel=key, count=count, **about), KernelFinished(at=2.0, kernel=key, **end)]


def grouping(name: str, kernels: dict[str, int], sum_us: float | None) -> list[Event]:
    entered = GroupingEntered(
        at=3.0, grouping=name, decisions=(), kernels=tuple(kernels), counts=tuple(kernels.values())
    )
    return [entered, GroupingScored(at=3.0, grouping=name, sum_us=sum_us)]


def started(run: str, target: str, device: str = "cuda:0") -> RunStarted:
    about = {"gpu": "NVIDIA H200", "seed": 0, "patience": 10, "prior": "cold", "database": "x.db"}
    return RunStarted(at=1.0, run=run, target=target, device=device, **about)


def ended(sum_us: float | None, assembled_us: float | None = None, state: str = "finished") -> list[Event]:
    counts = {"measured": 0, "cached": 9, "failed": 0, "best_us": None}
    shares = {"search_share": 0.01, "gpu_idle_share": 1.0, "wall_s": 1.0}
    total = RunFinished(at=9.0, sum_us=sum_us, assembled_us=assembled_us, **counts, **shares)
    return [total, StateChanged(at=9.0, state=state)]


def two_programs(device: str = "replay") -> list[Event]:
    """The first has a fused grouping and one of two kernels; the second calls the fused kernel twice, and another."""
    return [
        started("r1", "F.gelu(x + y)", device),
        *kernel("k1", "add", 4.0),
        *kernel("k2", "gelu", 3.0),
        *grouping("r1/1", {"k1": 1, "k2": 1}, 7.0),
        *kernel("k3", "add+gelu", 5.0),
        *grouping("r1/2", {"k3": 1}, 5.0),
        Assembled(at=4.0, grouping="r1/2", sum_us=5.0, assembled_us=None, reason="not recorded"),
        started("r2", "g(g(x))", device),
        *kernel("k4", "exp", 2.0),
        *grouping("r2/1", {"k3": 2, "k4": 1}, 12.0),
        Assembled(at=5.0, grouping="r2/1", sum_us=12.0, assembled_us=12.5),
        *ended(17.0),
    ]


def test_the_kernels_of_each_program_are_marked_and_add_up_to_its_sum() -> None:
    snapshot = folded(two_programs())
    first, second = programs_of(snapshot)
    assert [(k.row.label, k.count, k.chosen) for k in first.kernels] == [
        ("add+gelu", 1, True),
        ("add", 1, False),
        ("gelu", 1, False),
    ]
    assert [(k.row.label, k.count, k.chosen) for k in second.kernels] == [("add+gelu", 2, True), ("exp", 1, True)]
    for program in (first, second):
        assert program.sum_us == sum(k.count * (k.row.chosen_us or 0.0) for k in program.kernels if k.chosen)
    assert summary_lines(snapshot, Path("x.db"), None)[:-4] == [
        "measured 0, cached 0, failed 0 in 1.0 s",
        "",
        "program 1 of 2, 5.00 us: F.gelu(x + y)",
        "kernel                  count  best us  chosen  schedule",
        "add+gelu 64x64 float32      1     5.00  yes     BLOCK=1024 NUM_WARPS=4",
        "add 64x64 float32           1     4.00  -       BLOCK=1024 NUM_WARPS=4",
        "gelu 64x64 float32          1     3.00  -       BLOCK=1024 NUM_WARPS=4",
        "",
        "program 2 of 2, 12.00 us: g(g(x))",
        "kernel                  count  best us  schedule",
        "add+gelu 64x64 float32      2     5.00  BLOCK=1024 NUM_WARPS=4",
        "exp 64x64 float32           1     2.00  BLOCK=1024 NUM_WARPS=4",
        "",
        "kernels    3, 2 of them distinct",
        "",
        "sum        17.00 us",
        "assembled  not recorded (1 of 2 programs)",
        "wall time  searching 1.0 %",
    ]


def test_the_object_says_of_each_kernel_whose_it_is() -> None:
    found = summary_object(folded(two_programs()), Path("x.db"), None)
    assert [(k["key"], k["program"], k["chosen"], k["count"]) for k in found["kernels"]] == [
        ("k3", "F.gelu(x + y)", True, 1),
        ("k1", "F.gelu(x + y)", False, 1),
        ("k2", "F.gelu(x + y)", False, 1),
        ("k3", "g(g(x))", True, 2),
        ("k4", "g(g(x))", True, 1),
    ]
    chosen = [k for k in found["kernels"] if k["chosen"]]
    assert sum(k["count"] * k["best_us"] for k in chosen) == found["sum_us"]


def test_the_fastest_assembled_grouping_is_the_chosen_one() -> None:
    events = [
        started("r1", "f(x)"),
        *kernel("k1", "add", 4.0),
        *grouping("a", {"k1": 1}, 4.0),
        *kernel("k2", "sub", 4.1),
        *grouping("b", {"k2": 1}, 4.1),
        Assembled(at=4.0, grouping="a", sum_us=4.0, assembled_us=4.6),
        Assembled(at=4.0, grouping="b", sum_us=4.1, assembled_us=4.2),
        *ended(4.1, 4.2),
    ]
    (program,) = programs_of(folded(events))
    assert (program.sum_us, [(k.row.label, k.chosen) for k in program.kernels]) == (
        4.1,
        [("sub", True), ("add", False)],
    )


def test_before_a_grouping_is_scored_no_kernel_is_chosen() -> None:
    events = [started("r1", "f(x)"), *kernel("k1", "add", 4.0), *grouping("a", {"k1": 1}, None), *ended(None)]
    (program,) = programs_of(folded(events))
    assert [k.chosen for k in program.kernels] == [False]
    assert "chosen" not in "".join(summary_lines(folded(events), Path("x.db"), None))


@pytest.mark.parametrize(("device", "share"), [("replay", None), ("cuda:0", 1.0)])
def test_a_replay_has_no_gpu_to_be_idle(device: str, share: float | None) -> None:
    snapshot = folded(two_programs(device))
    assert summary_object(snapshot, Path("x.db"), None)["gpu_idle_share"] == share
    assert ("GPU idle" in "\n".join(summary_lines(snapshot, Path("x.db"), None))) == (share is not None)


@pytest.mark.parametrize(
    ("reason", "state", "line"),
    [
        ("not recorded", "finished", "assembled  not recorded"),
        ("", "finished", "assembled  not recorded"),
        ("the graph could not be captured", "finished", "assembled  not timed: the graph could not be captured"),
        ("", "stopped", None),
    ],
)
def test_an_assembled_time_that_is_not_known(reason: str, state: str, line: str | None) -> None:
    one = [started("r1", "f(x)"), *kernel("k1", "add", 4.0), *grouping("a", {"k1": 1}, 4.0)]
    check = [Assembled(at=4.0, grouping="a", sum_us=4.0, assembled_us=None, reason=reason)] if line else []
    snapshot = folded([*one, *check, *ended(4.0, state=state)])
    assert [said for said in summary_lines(snapshot, Path("x.db"), None) if "assembled" in said] == [line] * bool(line)
    assert summary_object(snapshot, Path("x.db"), None)["assembled_us"] is None


def test_the_object_of_a_failed_run_has_the_same_names(events: list[Event]) -> None:
    whole = summary_object(folded(events), Path("x.db"), None)
    failed = summary_object(folded(events[:6]), Path("x.db"), "the GPU is gone")
    assert failed.keys() == whole.keys()
    assert failed["failure"] == "the GPU is gone"
    assert failed["sum_us"] is None


def test_the_noise_floor_and_who_stands_out_of_it(events: list[Event]) -> None:
    health = Health(
        at=5.5, search_share=0.0, gpu_idle_share=0.2, compiling=0, respawns=0, noise_us=0.051, noise_share=0.0017
    )
    plain = folded([*events[:-2], health, *events[-2:]])
    floor = "noise      0.05 us (0.17 %) between a kernel and itself"
    assert floor in summary_lines(plain, Path("t.db"), None)
    compared = Compared(
        at=5.6,
        kernel=next(iter(plain.kernels)),
        schedules=("a", "b", "c"),
        chosen="a",
        processes=2,
        noise_share=0.0017,
        ratios=(1.02, 1.04),
        lows=(1.01, 1.03),
        highs=(1.03, 1.05),
        p_values=(1e-6, 1e-9),
        effects=(-4.0, -8.0),
        verdicts=("slower", "slower"),
    )
    won = folded([*events[:-2], health, compared, *events[-2:]])
    assert f"{floor}; the winners of 1 of 1 kernels stand out of it" in summary_lines(won, Path("t.db"), None)
    tied = replace(compared, verdicts=("within noise", "slower"))
    level = folded([*events[:-2], health, tied, *events[-2:]])
    assert f"{floor}; the winners of 0 of 1 kernels stand out of it" in summary_lines(level, Path("t.db"), None)
    found = json.loads(json_text(summary_object(level, Path("t.db"), None)))
    assert (found["noise_us"], found["noise_share"], found["kernels"][0]["tied_finalists"]) == (0.051, 0.0017, 1)


def test_the_chosen_of_a_comparison_may_not_be_the_first() -> None:
    compared = Compared(
        at=0.0,
        kernel="k",
        schedules=("a", "b", "c", "d"),
        chosen="c",
        processes=2,
        noise_share=0.0017,
        ratios=(0.92, 0.9, 1.04),
        lows=(0.91, 0.88, 1.03),
        highs=(0.94, 0.915, 1.05),
        p_values=(1e-6, 1e-9, 1e-4),
        effects=(4.0, 8.0, -3.0),
        verdicts=("faster", "faster", "slower"),
    )
    assert compared.tied == 1
