"""What the store knows of a kernel's finalists: the newest comparison of its context, exactly as it was told."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.events import Compared, ComparedInPlace
from engine.ir.plan import Program
from engine.store import RunInfo, Store
from engine.vocabulary import Context
from tests.tune.rig import matmul_program

OURS, THEIRS = (Context("GPU", "9.0", driver, "2", "3", "4") for driver in ("1", "2"))
COMPARED = Compared(
    at=10.0,
    kernel="k1",
    schedules=('{"BLOCK_M":64}', '{"BLOCK_M":128}'),
    chosen='{"BLOCK_M":128}',
    processes=2,
    noise_share=0.003,
    ratios=(0.97,),
    lows=(0.96,),
    highs=(0.98,),
    p_values=(1e-12,),
    effects=(5.0,),
    verdicts=("faster",),
)


def run_in(store: Store, context: Context, program: Program) -> str:
    store.record_context(context)
    return store.start_run(RunInfo("matmul", program, "cuda:0", context.gpu, context.key, 0, 50, "cold-1"))


def test_the_newest_comparison_of_the_context_is_known(tmp_path: Path) -> None:
    program = matmul_program()
    with Store.open(tmp_path / "t.db") as store:
        assert store.compared("k1", OURS.key) is None
        first, second, other = (run_in(store, context, program) for context in (OURS, OURS, THEIRS))
        store.record_events(first, [COMPARED, replace(COMPARED, at=11.0, kernel="k2")])
        store.record_events(second, [replace(COMPARED, at=12.0, cached=True)])
        store.record_events(other, [replace(COMPARED, at=13.0, chosen=COMPARED.schedules[0])])
        assert store.compared("k1", OURS.key) == replace(COMPARED, at=12.0, cached=True)
        assert store.compared("k2", OURS.key) == replace(COMPARED, at=11.0, kernel="k2")
        assert store.compared("k3", OURS.key) is None
        theirs = store.compared("k1", THEIRS.key)
    assert theirs is not None
    assert theirs.chosen == COMPARED.schedules[0]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_comparison_that_is_written_later_is_seen(tmp_path: Path, elsewhere: bool) -> None:
    path = tmp_path / "t.db"
    with Store.open(path) as store, Store.open(path) as other:
        writer = other if elsewhere else store
        run = run_in(writer, OURS, matmul_program())
        for at in (10.0, 11.0):
            assert store.compared("k2", OURS.key) is None
            writer.record_events(run, [replace(COMPARED, at=at)])
            assert store.compared("k1", OURS.key) == replace(COMPARED, at=at)


@pytest.mark.parametrize(
    "broken",
    [
        {"chosen": '{"BLOCK_M":1}'},
        {"schedules": ("BLOCK_M=64", "BLOCK_M=128"), "chosen": "BLOCK_M=64"},
        {"ratios": ()},
        {"ratios": ("DROP TABLE",)},
        {"verdicts": ("great",)},
    ],
)
def test_a_comparison_that_is_not_whole_is_none(tmp_path: Path, broken: dict[str, Any]) -> None:
    with Store.open(tmp_path / "t.db") as store:
        run = run_in(store, OURS, matmul_program())
        store.record_events(run, [replace(COMPARED, **broken)])
        assert store.compared("k1", OURS.key) is None


def test_a_body_that_is_no_json_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with Store.open(path) as store:
        run = run_in(store, OURS, matmul_program())
        store.record_events(run, [COMPARED])
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO event VALUES (?, 999, 99.0, 'Compared', '{')", (run,))
    with Store.open(path) as store:
        assert store.compared("k1", OURS.key) == COMPARED


IN_PLACE = ComparedInPlace(
    at=10.0,
    grouping="r/1",
    kernel="k1",
    graphs="a" * 24,
    schedules=('{"BLOCK_M":64}', '{"BLOCK_M":128}'),
    kept='{"BLOCK_M":128}',
    medians_us=(50.0, 48.0),
    noise_share=0.003,
    ratios=(0.96,),
    lows=(0.95,),
    highs=(0.97,),
    p_values=(1e-12,),
    effects=(5.0,),
    verdicts=("faster",),
    pdl=True,
)
FAILED = ComparedInPlace(
    at=11.0,
    grouping="r/1",
    kernel="k1",
    graphs="b" * 24,
    schedules=IN_PLACE.schedules,
    kept='{"BLOCK_M":64}',
    reason="x",
)


def test_what_was_tried_in_a_graph_is_known_in_its_context(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        run, other = (run_in(store, context, matmul_program()) for context in (OURS, THEIRS))
        store.record_events(run, [IN_PLACE, FAILED])
        assert store.compared_in_place(IN_PLACE.graphs, OURS.key) == IN_PLACE
        assert store.compared_in_place(FAILED.graphs, OURS.key) == FAILED
        assert store.compared_in_place(IN_PLACE.graphs, THEIRS.key) is None
        assert store.tried_in_place(run) == (IN_PLACE, FAILED)
        assert store.tried_in_place(other) == ()
    assert "48.00 us in place of 50.00 us" in IN_PLACE.text
    assert FAILED.text == "1 runner-up not timed in the graph: x"


@pytest.mark.parametrize(
    "broken", [{"kept": '{"BLOCK_M":1}'}, {"medians_us": (50.0,)}, {"ratios": ()}, {"verdicts": ("odd",)}]
)
def test_a_row_that_is_not_whole_is_no_try_in_place(tmp_path: Path, broken: dict[str, Any]) -> None:
    with Store.open(tmp_path / "t.db") as store:
        run = run_in(store, OURS, matmul_program())
        store.record_events(run, [replace(IN_PLACE, **broken)])
        assert store.compared_in_place(IN_PLACE.graphs, OURS.key) is None
        assert store.tried_in_place(run) == ()
