"""Generated sources kept as text, so that a change of a generator shows as a change of what it writes.

After a change that is meant: `python -m tests.codegen.test_golden` writes them anew; review the difference.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engine.codegen import illegal_because, render
from engine.ir import Kernel
from engine.vocabulary import KnobValue, Schedule, Target
from tests.codegen.attention_bodies import attention, slices_of_keys
from tests.codegen.attention_prologue_bodies import QWEN3_LAYER
from tests.codegen.bodies import kernel, layer_norm, matmul, rms_norm, softmax
from tests.codegen.epilogue_bodies import partial_sums, projections
from tests.codegen.sibling_bodies import gate_up

FOLDER = Path(__file__).parent / "golden"


def contraction(**changes: KnobValue) -> Schedule:
    knobs: dict[str, KnobValue] = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "PRECISION": "ieee"}
    knobs |= {"LOADS": "pointer", "GROUP_M": 8, "PERSISTENT": False, "NUM_WARPS": 8, "NUM_STAGES": 3}
    return Schedule.of(knobs | changes)


def attention_schedule(**changes: KnobValue) -> Schedule:
    knobs: dict[str, KnobValue] = {"BLOCK_M": 64, "BLOCK_N": 128, "PRECISION": "ieee", "LOADS": "pointer"}
    return Schedule.of(knobs | {"NUM_WARPS": 4, "NUM_STAGES": 3} | changes)


def attention_roles(**changes: KnobValue) -> Schedule:
    knobs: dict[str, KnobValue] = {"BLOCK_M": 128, "BLOCK_N": 128, "LOADS": "descriptor", "NUM_WARPS": 8}
    return attention_schedule(**{**knobs, "NUM_STAGES": 2, **changes})


def rowwise(**changes: KnobValue) -> Schedule:
    knobs: dict[str, KnobValue] = {"PERSISTENT": False, "ROWS": 1, "COLUMNS": 4096, "EVICTION": ""}
    return Schedule.of(knobs | {"NUM_WARPS": 4, "NUM_STAGES": 1} | changes)


def cases() -> dict[str, tuple[Kernel, Schedule]]:
    small = {"BLOCK_M": 16, "BLOCK_N": 32, "BLOCK_K": 16, "GROUP_M": 1, "NUM_WARPS": 2, "NUM_STAGES": 2}
    square = Kernel("contraction", matmul(4096, 4096, 4096, "bfloat16"))
    linear = matmul(512, 4096, 1024, "bfloat16", turn_right=True, bias=True, activation="gelu")
    return {
        "matmul_pointers": (square, contraction()),
        "matmul_persistent_descriptors": (square, contraction(LOADS="descriptor", PERSISTENT=True)),
        "matmul_stored_in_halves": (
            square,
            contraction(LOADS="descriptor", PERSISTENT=True, NUM_STAGES=4, STORES="halves"),
        ),
        "linear_gelu_in_halves": (
            Kernel("contraction", linear),
            contraction(BLOCK_M=128, BLOCK_N=128, LOADS="descriptor", NUM_STAGES=4, STORES="halves"),
        ),
        "matmul_tf32x3": (
            Kernel("contraction", matmul(512, 512, 512, "float32")),
            contraction(BLOCK_M=32, BLOCK_N=64, PRECISION="tf32x3", GROUP_M=1, NUM_WARPS=4, NUM_STAGES=4),
        ),
        "linear_gelu_descriptors": (
            Kernel("contraction", linear),
            contraction(BLOCK_M=64, BLOCK_N=128, LOADS="descriptor", NUM_WARPS=4, NUM_STAGES=4),
        ),
        "token_without_dot": (
            Kernel("contraction", matmul(1, 4096, 1024, "bfloat16")),
            contraction(BLOCK_M=1, BLOCK_N=32, BLOCK_K=256, GROUP_M=1, NUM_WARPS=4, NUM_STAGES=4),
        ),
        "gated_tokens_without_dot": (
            Kernel("contraction", gate_up(3, 3072, 1000, "bfloat16")),
            contraction(BLOCK_M=4, BLOCK_N=16, BLOCK_K=128, GROUP_M=1, NUM_WARPS=4, NUM_STAGES=2),
        ),
        "ragged_bmm": (kernel("contraction", "bmm"), contraction(**small)),
        "epilogue_of_everything": (kernel("contraction", "epilogue_of_everything"), contraction(**small)),
        "prologues": (kernel("contraction", "prologues"), contraction(**small)),
        "tokens_that_do_not_collapse": (kernel("contraction", "linear_of_tokens"), contraction(**small)),
        "attention_grouped_descriptors": (
            Kernel("attention", attention(16, 512, 512, 128, "bfloat16", group=2, causal=True)),
            attention_schedule(LOADS="descriptor"),
        ),
        "attention_window_pointers": (
            Kernel("attention", attention(4, 500, 500, 80, "float16", causal=True, window=100, added=(1, 4, 1, 500))),
            attention_schedule(BLOCK_N=64, NUM_STAGES=2),
        ),
        "attention_norm_and_rotary": (
            Kernel("attention", QWEN3_LAYER.body()),
            attention_schedule(BLOCK_M=16, BLOCK_N=32, NUM_WARPS=2, NUM_STAGES=1, LOADS="descriptor"),
        ),
        "attention_mask_cut": (
            Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", causal=True)),
            attention_schedule(LOADS="descriptor", MASK="cut", BLOCK_N=64, NUM_STAGES=3),
        ),
        "attention_soft_capped_cut": (
            Kernel("attention", attention(8, 2048, 2048, 128, "bfloat16", group=2, cap=50.0, causal=True)),
            attention_schedule(MASK="cut", BLOCK_M=128, NUM_WARPS=8),
        ),
        "attention_two_query_tiles": (
            Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16")),
            attention_schedule(BLOCK_M=128, BLOCK_N=64, LOADS="descriptor", NUM_WARPS=4, NUM_STAGES=2, QUERY_TILES=2),
        ),
        "attention_overlap_causal": (
            Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", batch=4, causal=True)),
            attention_roles(MASK="cut", OVERLAP="persistent"),
        ),
        "attention_overlap_grouped": (
            Kernel("attention", attention(8, 1024, 2048, 64, "float16", batch=2, group=4, causal=True, offset=1024)),
            attention_roles(BLOCK_N=64, NUM_STAGES=3, MASK="cut", OVERLAP="specialized"),
        ),
        "attention_overlap_full": (
            Kernel("attention", attention(20, 2048, 2048, 128, "bfloat16", group=2, tokens_first=False, joined=False)),
            attention_roles(OVERLAP="persistent"),
        ),
        "attention_slices": (
            Kernel("attention", slices_of_keys(8, 16, 2, 256, 128, "bfloat16")),
            attention_schedule(BLOCK_M=16, LOADS="descriptor", NUM_STAGES=2),
        ),
        "gate_up_descriptors": (
            Kernel("contraction", gate_up(512, 3072, 1024, "bfloat16")),
            contraction(BLOCK_M=64, BLOCK_N=64, LOADS="descriptor", NUM_WARPS=4),
        ),
        "projections_side_by_side": (
            Kernel("contraction", projections(512, 1024, 128, (16, 8, 8), "bfloat16")),
            contraction(BLOCK_M=64, BLOCK_N=128, LOADS="descriptor", NUM_WARPS=4, NUM_STAGES=4),
        ),
        "partial_sums": (
            Kernel("contraction", partial_sums(512, 1024, depth=2048)),
            contraction(BLOCK_M=64, BLOCK_N=64, NUM_WARPS=4),
        ),
        "scaled_heads": (kernel("contraction", "scaled_heads"), contraction(**small)),
        "softmax_one_pass": (Kernel("rowwise", softmax((16384,), 4096, "bfloat16")), rowwise(ROWS=2, NUM_WARPS=8)),
        "softmax_looped": (
            Kernel("rowwise", softmax((16384,), 5000, "bfloat16")),
            rowwise(COLUMNS=1024, NUM_STAGES=3, EVICTION="evict_last"),
        ),
        "rms_norm_persistent": (
            Kernel("rowwise", rms_norm(16384, 4096, "bfloat16")),
            rowwise(PERSISTENT=True, NUM_STAGES=2),
        ),
        "layer_norm": (Kernel("rowwise", layer_norm(100, 1000, "float32")), rowwise(ROWS=4, COLUMNS=1024)),
        "rotary": (
            kernel("pointwise", "rotary_heads_first"),
            Schedule.of({"BLOCK": 128, "EVICTION": "", "NUM_WARPS": 1}),
        ),
        "embedding": (
            kernel("pointwise", "embedding"),
            Schedule.of({"BLOCK": 256, "EVICTION": "", "NUM_WARPS": 2}),
        ),
        "joined": (
            kernel("pointwise", "joined_middle"),
            Schedule.of({"BLOCK": 128, "EVICTION": "", "NUM_WARPS": 1}),
        ),
        "norm_and_rotary": (
            kernel("rowwise", "norm_and_rotary"),
            rowwise(COLUMNS=32),
        ),
        "pointwise_layouts": (
            kernel("pointwise", "layouts"),
            Schedule.of({"BLOCK": 128, "EVICTION": "", "NUM_WARPS": 1}),
        ),
    }


@pytest.mark.parametrize("name", sorted(cases()))
def test_source_is_the_reviewed_one(name: str) -> None:
    subject, schedule = cases()[name]
    assert illegal_because(subject, schedule, Target()) is None
    assert render(subject, schedule).text == (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def test_every_golden_source_has_a_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(cases())


def test_labels_of_inputs_never_reach_the_text() -> None:
    subject, schedule = cases()["matmul_pointers"]
    body = dataclasses.replace(subject.body, labels=("x); import os; (", "weight"))
    assert render(Kernel("contraction", body, "import os"), schedule) == render(subject, schedule)


if __name__ == "__main__":
    for found, (subject, schedule) in cases().items():
        (FOLDER / f"{found}.py").write_text(render(subject, schedule).text, encoding="utf-8")
