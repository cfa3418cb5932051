from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codegen import FAMILIES, illegal_because, offered_schedules, render
from engine.ir import Kernel
from engine.knobs import KNOBS
from engine.vocabulary import KnobValue, Schedule, Target
from tests.codegen.attention_bodies import attention
from tests.codegen.attention_prologue_bodies import QWEN3_LAYER
from tests.codegen.bodies import BODIES, kernel, matmul
from tests.codegen.epilogue_bodies import projections

H200 = Target()
LARGE = Kernel("contraction", matmul(4096, 4096, 4096, "bfloat16"))
FLOAT32 = Kernel("contraction", matmul(512, 512, 512, "float32"))
GOOD: dict[str, KnobValue] = {
    "BLOCK_M": 128,
    "BLOCK_N": 128,
    "BLOCK_K": 64,
    "PRECISION": "ieee",
    "LOADS": "pointer",
    "GROUP_M": 8,
    "PERSISTENT": False,
    "NUM_WARPS": 8,
    "NUM_STAGES": 3,
}


def reason(subject: Kernel, target: Target = H200, **changes: KnobValue) -> str:
    return illegal_because(subject, Schedule.of({**GOOD, **changes}), target) or "legal"


def test_legal_schedule_has_no_reason() -> None:
    assert reason(LARGE) == "legal"


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"BLOCK_M": 8}, "smallest tile"),
        ({"BLOCK_M": 0}, "smallest tile"),
        ({"BLOCK_M": 48}, "no power of two"),
        ({"BLOCK_M": True}, "BLOCK_M is a whole number"),
        ({"BLOCK_M": "128"}, "BLOCK_M is a whole number"),
        ({"PERSISTENT": 1}, "PERSISTENT is true or false"),
        ({"LOADS": "magic"}, "LOADS is one of 'pointer', 'descriptor'"),
        ({"PRECISION": "tf32x3"}, "for float32 operands"),
        ({"NUM_WARPS": 64}, "at most 1024"),
        ({"NUM_STAGES": 40}, "more than 16"),
        ({"GROUP_M": -3}, "outside 1 to 65536"),
        ({"BLOCK_M": 256, "BLOCK_N": 256}, "accumulators"),
        ({"BLOCK_K": 256, "NUM_STAGES": 4}, "shared memory"),
        ({"BLOCK_K": 512, "NUM_STAGES": 1, "LOADS": "descriptor"}, "more than 256 elements"),
        ({"BLOCK_M": 16384, "NUM_WARPS": 32}, "larger than"),
        ({"WIDTH": 3}, "WIDTH is no knob"),
    ],
)
def test_illegal_schedule_is_refused_in_words(changes: dict[str, KnobValue], part: str) -> None:
    found = reason(LARGE, **changes)
    assert part in found
    assert found.endswith(".")


def test_missing_knob_is_named() -> None:
    schedule = Schedule.of({name: value for name, value in GOOD.items() if name != "BLOCK_K"})
    assert "lacks BLOCK_K" in (illegal_because(LARGE, schedule, H200) or "")


def test_value_outside_the_offered_ones_is_legal_when_it_breaks_no_law() -> None:
    assert reason(LARGE, GROUP_M=5, NUM_STAGES=1, NUM_WARPS=16) == "legal"


def test_tiles_without_a_dot_hold_every_row_and_load_through_pointers() -> None:
    few = Kernel("contraction", matmul(3, 4096, 1024, "float32"))
    tile = {"BLOCK_N": 32, "BLOCK_K": 128, "GROUP_M": 1, "NUM_WARPS": 4}
    assert reason(few, BLOCK_M=4, **tile) == "legal"
    assert reason(few, BLOCK_M=8, **tile) == "legal"
    assert "hold all 3 rows" in reason(few, BLOCK_M=2, **tile)
    assert "PRECISION=tf32x3" in reason(few, BLOCK_M=4, PRECISION="tf32x3", **tile)
    assert "LOADS=descriptor" in reason(few, BLOCK_M=4, LOADS="descriptor", **tile)
    offered = {schedule["BLOCK_M"] for schedule in offered_schedules(few, H200)}
    assert offered == {4, 16}
    assert {s["BLOCK_M"] for s in offered_schedules(Kernel("contraction", matmul(9, 64, 64, "float32")), H200)} == {16}


LONG = Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", causal=True))


def attention_reason(subject: Kernel, **changes: KnobValue) -> str:
    knobs: dict[str, KnobValue] = {"BLOCK_M": 128, "BLOCK_N": 64, "PRECISION": "ieee", "LOADS": "descriptor"}
    return illegal_because(subject, Schedule.of(knobs | {"NUM_WARPS": 8, "NUM_STAGES": 2} | changes), H200) or "legal"


def test_a_schedule_without_optional_knobs_has_them_off() -> None:
    assert attention_reason(LONG) == "legal"
    old = Schedule.of(
        {
            **{"BLOCK_M": 128, "BLOCK_N": 64, "PRECISION": "ieee", "LOADS": "descriptor"},
            **{"NUM_WARPS": 8, "NUM_STAGES": 2},
        }
    )
    assert render(LONG, old) == render(LONG, Schedule.of({**old.as_dict(), "MASK": "every", "QUERY_TILES": 1}))


def test_a_recorded_knob_without_effect_is_no_fault() -> None:
    assert attention_reason(LONG, DIAGONAL=False, MAXNREG=0) == "legal"
    assert "DIAGONAL is no knob" in attention_reason(LONG, DIAGONAL=True, MAXNREG=0)
    assert "MAXNREG is no knob" in attention_reason(LONG, DIAGONAL=False, MAXNREG=128)


def test_optional_knobs_are_offered_where_they_can_pay() -> None:
    causal, full = LONG, Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16"))
    assert {s.as_dict()["MASK"] for s in offered_schedules(causal, H200)} == {"every", "cut"}
    assert {s.as_dict()["QUERY_TILES"] for s in offered_schedules(full, H200)} == {1, 2}
    assert "QUERY_TILES" not in next(iter(offered_schedules(causal, H200))).as_dict()
    assert "MASK" not in next(iter(offered_schedules(full, H200))).as_dict()
    short = Kernel("attention", attention(16, 512, 512, 128, "bfloat16", causal=True))
    assert not {"MASK", "QUERY_TILES"} & set(next(iter(offered_schedules(short, H200))).as_dict())


def test_a_mask_that_only_cuts_blocks_is_causal_alone() -> None:
    assert attention_reason(LONG, MASK="cut") == "legal"
    for changes in ({}, {"causal": True, "window": 100}, {"causal": True, "hidden": (1, 1, 2048, 2048)}):
        masked = Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", **changes))
        assert "not the only one" in attention_reason(masked, MASK="cut")
    ragged = Kernel("attention", attention(16, 2048, 2040, 128, "bfloat16", causal=True))
    assert "divide" in attention_reason(ragged, MASK="cut", LOADS="pointer")


def test_two_tiles_of_queries_have_no_mask() -> None:
    full = Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16"))
    assert attention_reason(full, QUERY_TILES=2) == "legal"
    for changes in ({"causal": True}, {"hidden": (1, 1, 2048, 2048)}, {"added": (1, 1, 2048, 2048)}):
        masked = Kernel("attention", attention(16, 2048, 2048, 128, "bfloat16", **changes))
        assert "masked or changed" in attention_reason(masked, QUERY_TILES=2)
    ragged = Kernel("attention", attention(16, 2048, 2040, 128, "bfloat16"))
    assert "divide" in attention_reason(ragged, QUERY_TILES=2, LOADS="pointer")
    assert "is halved into" in attention_reason(full, QUERY_TILES=2, BLOCK_M=16)
    assert "is halved into" in attention_reason(full, QUERY_TILES=4)
    assert "computed" in attention_reason(Kernel("attention", QWEN3_LAYER.body()), QUERY_TILES=2)


def test_stores_through_tma_are_offered_where_programs_walk_large_tiles() -> None:
    offered = [s.as_dict() for s in offered_schedules(LARGE, H200)]
    assert {s["STORES"] for s in offered} == {"pointer", "whole", "halves", "quarters"}
    stored = [s for s in offered if s["STORES"] != "pointer"]
    assert all(s["PERSISTENT"] and s["LOADS"] == "descriptor" for s in stored)
    one_wave = Kernel("contraction", matmul(512, 4096, 1024, "bfloat16"))
    assert "STORES" not in next(iter(offered_schedules(one_wave, H200))).as_dict()
    assert reason(one_wave, STORES="halves") == "legal"
    assert "STORES" not in next(iter(offered_schedules(LARGE, Target(capability=80)))).as_dict()
    linear = matmul(512, 4096, 1024, "bfloat16", turn_right=True, bias=True, activation="gelu")
    computed = [s.as_dict() for s in offered_schedules(Kernel("contraction", linear), H200)]
    assert {s["STORES"] for s in computed if not s["PERSISTENT"]} == {"pointer", "halves"}


def test_what_tma_stores_is_told_in_words() -> None:
    assert reason(LARGE, STORES="halves", LOADS="descriptor", PERSISTENT=True) == "legal"
    assert "9.0" in reason(LARGE, Target(capability=80), STORES="whole")
    small = {"BLOCK_M": 16, "BLOCK_K": 16, "NUM_WARPS": 1, "GROUP_M": 1}
    assert "at least 16" in reason(LARGE, **small, BLOCK_N=16, STORES="quarters")
    assert "multiple of 16 bytes" in reason(kernel("contraction", "ragged_fp32"), **small, BLOCK_N=16, STORES="whole")
    few = Kernel("contraction", matmul(3, 4096, 1024, "float32"))
    tile = {"BLOCK_M": 4, "BLOCK_N": 32, "BLOCK_K": 128, "GROUP_M": 1, "NUM_WARPS": 4}
    assert "BLOCK_M=4 has none" in reason(few, **tile, STORES="whole")
    batch = Kernel("contraction", matmul(100, 64, 64, "bfloat16", batch=(2,)))
    assert "next matrix" in reason(batch, **small, BLOCK_N=16, STORES="whole")
    heads = Kernel("contraction", projections(64, 64, 32, (4, 2, 2), "bfloat16"))
    assert "side by side" in reason(heads, **small, BLOCK_N=32, STORES="whole")


def test_tf32_needs_leave() -> None:
    assert "doesn't allow TF32" in reason(FLOAT32, PRECISION="tf32", BLOCK_K=32)
    allowed = Kernel("contraction", matmul(512, 512, 512, "float32", allow_tf32=True))
    assert reason(allowed, PRECISION="tf32", BLOCK_K=32) == "legal"
    offered = {schedule["PRECISION"] for schedule in offered_schedules(FLOAT32, H200)}
    assert offered == {"ieee", "tf32x3"}


def test_descriptors_need_hopper() -> None:
    assert "9.0" in reason(LARGE, Target(capability=80), LOADS="descriptor")


def test_descriptors_need_an_operand_of_aligned_rows() -> None:
    small = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "NUM_WARPS": 1}
    ragged = kernel("contraction", "ragged_fp32")
    assert "multiple of 16 bytes" in reason(ragged, LOADS="descriptor", **small)
    assert "prologue" in reason(kernel("contraction", "prologues"), LOADS="descriptor", **small)


def test_descriptor_of_a_batch_never_reads_the_next_matrix_along_the_depth() -> None:
    batch = kernel("contraction", "bmm_descriptors")
    assert "next matrix" in reason(batch, LOADS="descriptor", BLOCK_M=16, BLOCK_N=16, BLOCK_K=128)
    assert reason(batch, LOADS="descriptor", BLOCK_M=16, BLOCK_N=32, BLOCK_K=32) == "legal"


def test_tile_that_wgmma_reads_and_others_compute_on_is_not_pipelined() -> None:
    shared = kernel("contraction", "same_input_twice")
    tile = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "NUM_WARPS": 4}
    assert "race" in reason(shared, **tile, NUM_STAGES=2)
    assert reason(shared, **tile, NUM_STAGES=1) == "legal"
    assert reason(shared, **(tile | {"BLOCK_M": 32}), NUM_STAGES=2) == "legal"
    assert reason(kernel("contraction", "even_bf16"), **tile, NUM_STAGES=2) == "legal"


@pytest.mark.parametrize(
    ("family", "body", "part"),
    [
        ("pointwise", ("rowwise", "rms_norm"), "holds no mean"),
        ("rowwise", ("pointwise", "floats"), "at least one reduction"),
        ("rowwise", ("contraction", "even_bf16"), "no matmul"),
        ("contraction", ("rowwise", "rms_norm"), "one matmul"),
    ],
)
def test_family_declines_a_body_of_another_kind(family: str, body: tuple[str, str], part: str) -> None:
    assert part in (FAMILIES[family].declined_because(BODIES[body[0]][body[1]]()) or "")


@pytest.mark.parametrize(("family", "name"), [(family, name) for family in BODIES for name in BODIES[family]])
def test_family_takes_its_own_bodies(family: str, name: str) -> None:
    assert FAMILIES[family].declined_because(BODIES[family][name]()) is None


def test_unknown_family_is_a_reason() -> None:
    assert "no kernel family" in (illegal_because(Kernel("magic", LARGE.body), Schedule.of(GOOD), H200) or "")


_any_value = st.one_of(st.integers(-2, 1024), st.booleans(), st.sampled_from(["", "ieee", "pointer", "x"]))


@given(st.sampled_from(sorted(BODIES)), st.data())
def test_any_schedule_gets_an_answer_and_a_legal_one_renders(family: str, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(BODIES[family])))
    subject = kernel(family, name)
    knobs = {
        knob: data.draw(st.one_of(st.sampled_from([*KNOBS[knob].values, KNOBS[knob].off]), _any_value))
        for knob in FAMILIES[family].knobs
    }
    schedule = Schedule.of(knobs)
    found = illegal_because(subject, schedule, H200)
    if found is None:
        compile(render(subject, schedule).text, "kernel", "exec")
    else:
        assert found[0].isupper()
        assert found.endswith(".")
