"""Sources become sm_90 binaries without a GPU, with the shared memory that legality counts on."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from engine.codegen import offered_schedules, render
from engine.codegen.contraction_facts import contraction_facts
from engine.codegen.contraction_rules import pipeline_bytes, scratch_bytes
from engine.ir import Kernel
from engine.runtime import CompiledSource, compile_source
from engine.vocabulary import KnobValue, Schedule, Target
from tests.codegen.bodies import kernel, matmul, softmax
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
        scratch = scratch_bytes(facts, values, H200)
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


def test_rows_are_read_and_written_in_pieces_of_16_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Kernel("rowwise", softmax((16384,), 4096, "bfloat16"))
    built = build(subject, rowwise(ROWS=2, NUM_WARPS=8), tmp_path, monkeypatch)
    assert count(built, r"ld\.global\.v4\.b32") == count(built, r"st\.global\.v4\.b32") == 4
    assert count(built, r"(ld|st)\.global\.") == 8
