"""Sources become sm_90 binaries without a GPU, with the shared memory that legality counts on."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from engine.codegen import offered_schedules, render
from engine.codegen.contraction_facts import contraction_facts
from engine.codegen.contraction_memory import pipeline_bytes, scratch_bytes
from engine.codegen.contraction_stores import parts_of, store_bytes
from engine.ir import GraphBuilder, Kernel
from engine.runtime import CompiledSource, compile_source
from engine.vocabulary import KnobValue, Schedule, Target
from tests.codegen.bodies import kernel, matmul, softmax, tensor
from tests.codegen.test_golden import cases, contraction, rowwise

H200 = Target()
TURNED = Kernel("contraction", matmul(512, 512, 512, "float32", turn_left=True, turn_right=True))
SQUARE = Kernel("contraction", matmul(4096, 4096, 4096, "bfloat16"))
FLOAT32 = Kernel("contraction", matmul(512, 512, 512, "float32"))


def build(
    subject: Kernel, schedule: Schedule, folder: Path, monkeypatch: pytest.MonkeyPatch, target: Target = H200
) -> CompiledSource:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder / "cache"))
    return compile_source(render(subject, schedule, target), target, folder)


def count(built: CompiledSource, instruction: str) -> int:
    return len(re.findall(instruction, built.kernel.asm["ptx"]))


@pytest.mark.parametrize("name", sorted(cases()))
def test_golden_cases_compile(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = build(*cases()[name], tmp_path, monkeypatch)
    assert (built.build.shared_bytes or 0) <= H200.shared_bytes
    assert not built.build.spills


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("contraction", "same_input_twice"),
        ("contraction", "dequantized_weight"),
        ("contraction", "bmm_descriptors"),
        ("contraction", "one_row"),
        ("rowwise", "integer_reductions"),
        ("rowwise", "double"),
        ("pointwise", "floats"),
        ("pointwise", "constants"),
        ("pointwise", "powers"),
    ],
)
def test_offered_schedules_compile(family: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_chip = Target(multiprocessors=3)
    subject = kernel(family, name)
    schedule = random.Random(3).choice(list(offered_schedules(subject, small_chip)))
    built = build(subject, schedule, tmp_path, monkeypatch, small_chip)
    assert (built.build.shared_bytes or 0) <= H200.shared_bytes


@pytest.mark.parametrize("subject", [SQUARE, FLOAT32, TURNED], ids=["bf16", "fp32", "turned"])
def test_counted_shared_memory_is_what_triton_takes(
    subject: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = contraction_facts(subject.body)
    for schedule in random.Random(11).sample(list(offered_schedules(subject, H200)), 6):
        values = schedule.as_dict()
        taken = build(subject, schedule, tmp_path, monkeypatch).build.shared_bytes or 0
        counted = pipeline_bytes(facts, values, H200)
        scratch = max(scratch_bytes(facts, values, H200), store_bytes(facts, values))
        epilogue = int(values["BLOCK_M"]) * int(values["BLOCK_N"]) * 4
        copy = int(values["BLOCK_K"]) * int(values["BLOCK_N"]) * 4 if facts.element_bytes == 4 else 0
        assert pipeline_bytes(facts, values, H200, least=True) <= taken
        assert counted <= taken <= max(counted + scratch + copy + 64, epilogue), str(schedule)


@pytest.mark.parametrize(
    ("changes", "present", "absent"),
    [
        ({"LOADS": "descriptor"}, ("wgmma.mma_async", "cp.async.bulk.tensor"), ("mma.sync",)),
        ({}, ("wgmma.mma_async", "cp.async.cg"), ("cp.async.bulk", "cp.async.ca")),
        ({"BLOCK_M": 32, "BLOCK_N": 64}, ("mma.sync", "cp.async.cg"), ("wgmma.mma_async",)),
    ],
)
def test_matmul_uses_the_fast_instructions(
    changes: dict[str, KnobValue],
    present: tuple[str, ...],
    absent: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = build(SQUARE, contraction(**changes), tmp_path, monkeypatch)
    assert all(count(built, instruction) for instruction in present)
    assert not any(count(built, instruction) for instruction in absent)


@pytest.mark.parametrize(("stores", "stages"), [("whole", 3), ("halves", 4), ("quarters", 4)])
def test_a_tile_that_tma_stores_takes_no_detour_and_only_the_shared_memory_of_a_part(
    stores: str, stages: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = contraction(LOADS="descriptor", PERSISTENT=True, NUM_STAGES=stages, STORES=stores)
    facts, values = contraction_facts(SQUARE.body), schedule.as_dict()
    built = build(SQUARE, schedule, tmp_path, monkeypatch)
    assert count(built, r"cp\.async\.bulk\.tensor\.2d\.global") == parts_of(values)
    assert not count(built, r"st\.global|ld\.shared")
    loop = pipeline_bytes(facts, values, H200)
    assert loop <= (built.build.shared_bytes or 0) - store_bytes(facts, values) <= loop + 64
    through_pointers = build(SQUARE, Schedule.of(values | {"STORES": "pointer"}), tmp_path, monkeypatch)
    assert (built.build.registers or 0) < (through_pointers.build.registers or 0)


@pytest.mark.parametrize("result", ["bfloat16", "float32"])
def test_an_epilogue_in_parts_spills_nothing(result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once an exact GELU needs more registers than there are; one for a result of 16 bits needs few."""
    b = GraphBuilder()
    x, w, bias = (tensor(b, shape, "bfloat16") for shape in ((4096, 1024), (1024, 4096), (4096,)))
    activated = b.add("gelu", b.add("add", b.add("matmul", x, w), bias))
    linear = b.build(activated if result == "bfloat16" else b.add("cast", activated, dtype=result))
    at_once, in_halves = (
        build(Kernel("contraction", linear), contraction(LOADS="descriptor", STORES=stores), tmp_path, monkeypatch)
        for stores in ("whole", "halves")
    )
    assert bool(at_once.build.spills) == (result == "float32")
    assert not in_halves.build.spills


def test_rows_are_read_and_written_in_pieces_of_16_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Kernel("rowwise", softmax((16384,), 4096, "bfloat16"))
    built = build(subject, rowwise(ROWS=2, NUM_WARPS=8), tmp_path, monkeypatch)
    assert count(built, r"ld\.global\.v4\.b32") == count(built, r"st\.global\.v4\.b32") == 4
    assert count(built, r"(ld|st)\.global\.") == 8


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("stages", [1, 4])
def test_rows_without_a_dot_read_the_matrix_once_in_pieces_of_16_bytes(
    turned: bool, stages: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Kernel("contraction", matmul(1, 4096, 1024, "bfloat16", turn_right=turned))
    schedule = contraction(BLOCK_M=1, BLOCK_N=32, BLOCK_K=256, GROUP_M=1, NUM_WARPS=4, NUM_STAGES=stages)
    built = build(subject, schedule, tmp_path, monkeypatch)
    wide = "cp.async.cg.shared.global" if stages > 1 else r"ld\.global\.v4\.b32"
    assert count(built, wide) % 8 == 0
    assert count(built, wide) > 0
    assert not count(built, "mma")
    assert not built.build.spills
    needed = pipeline_bytes(contraction_facts(subject.body), schedule.as_dict(), H200)
    assert needed <= (built.build.shared_bytes or 0) <= needed + 2048


def beside(widths: tuple[int, ...], *, computed: bool, batch: tuple[int, ...] = ()) -> Kernel:
    """Products of equal rows side by side; the rows are scaled by a vector where they are `computed`."""
    b = GraphBuilder()
    x = tensor(b, (*batch, 512, 1024), "bfloat16")
    if computed:
        x = b.add("mul", x, tensor(b, (1024,), "bfloat16"))
    weights = [tensor(b, (*batch, 1024, n), "bfloat16") for n in widths]
    return Kernel("contraction", b.build(*(b.add("matmul", x, w) for w in weights)))


@pytest.mark.parametrize("loads", ["pointer", "descriptor"])
@pytest.mark.parametrize(
    ("widths", "computed", "batch"),
    [((2048, 1024), False, ()), ((2048, 1024, 1024), True, ()), ((1024, 512), False, (3,))],
)
def test_products_side_by_side_take_no_more_shared_memory_than_is_counted(
    widths: tuple[int, ...],
    computed: bool,
    batch: tuple[int, ...],
    loads: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subject = beside(widths, computed=computed, batch=batch)
    tile = {"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 128, "GROUP_M": 1, "NUM_WARPS": 4, "NUM_STAGES": 4}
    schedule = contraction(LOADS=loads, **tile)
    taken = build(subject, schedule, tmp_path, monkeypatch).build.shared_bytes or 0
    counted = pipeline_bytes(contraction_facts(subject.body), schedule.as_dict(), H200)
    assert 0.9 * counted <= taken <= counted + 64


@pytest.mark.parametrize("name", ["rotary", "norm_and_rotary", "attention_norm_and_rotary"])
def test_a_sign_is_changed_by_no_arithmetic(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject, schedule = cases()[name]
    source = render(subject, schedule)
    assert " * -1.0" in source.text
    built = build(subject, schedule, tmp_path, monkeypatch)
    assert not count(built, r"(?:sub|mul)\S*\s+%\w+, (?:%\w+, 0fBF800000|0f[08]0000000, %\w+);")
