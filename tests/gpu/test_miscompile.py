"""The known miscompile, shown: a loaded tile that is computed on and read by wgmma in one pipelined loop.

Triton 3.6 gives wrong results that move from run to run, and says nothing. Where a later version is right, the counts
show it; what is asserted is that the forms Emmy writes are right, and that legality refuses the form that races.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.codegen import Argument, KernelSource, illegal_because, offered_schedules, render
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.runtime import BuildError, bind_launch, compare, compile_source
from engine.runtime.toolchain import read_target
from engine.vocabulary import Schedule, Target

M, N, K = 512, 4096, 1024
RUNS = 10
WRONG = 1e-2
"""A right result is off by the rounding of its output, about 2e-3."""

TEXT = """import triton
import triton.language as tl


@triton.jit
def scaled(x, w, out):
    rows = tl.program_id(0) * {m} + tl.arange(0, {m})[:, None]
    cols = tl.program_id(1) * {n} + tl.arange(0, {n})[None, :]
    acc = tl.zeros(({m}, {n}), tl.float32)
    squares = tl.zeros(({m}, 1), tl.float32)
    for k in tl.range(0, {K}, {k}):
        left = tl.load(x + rows * {K} + k + tl.arange(0, {k})[None, :])
        right = tl.load(w + (k + tl.arange(0, {k})[:, None]) * {N} + cols)
        wide = left.to(tl.float32)
        {square}
        acc = tl.dot({operand}, right, acc)
    scale = tl.rsqrt(squares / {K} + 1e-6)
    tl.store(out + rows * {N} + cols, (acc * scale).to(tl.bfloat16))
"""
SHARED = {"square": "squares += tl.sum(wide * wide, 1, keep_dims=True)", "operand": "left"}
NEW_TILE = {"square": "squares += tl.sum(wide * wide, 1, keep_dims=True)", "operand": "(wide * 1.5).to(tl.bfloat16)"}

TILES = [(64, 64, 64, 4), (64, 128, 64, 4), (128, 64, 64, 4), (128, 128, 64, 8), (128, 128, 32, 4), (128, 256, 64, 8)]


def source(form: dict[str, str], tile: tuple[int, int, int, int], stages: int) -> KernelSource:
    m, n, k, warps = tile
    text = TEXT.format(m=m, n=n, k=k, K=K, N=N, **form)
    arguments = (
        Argument("x", "input", 0, "*bf16"),
        Argument("w", "input", 1, "*bf16"),
        Argument("out", "output", 0, "*bf16"),
    )
    return KernelSource(text, "scaled", arguments, (M // m, N // n, 1), warps, stages)


def errors(made: KernelSource, target: Target, folder: Path, factor: float) -> list[float]:
    """The relative error of each of RUNS runs on the same inputs; none where the source doesn't compile."""
    generator = torch.Generator("cuda").manual_seed(0)
    x, w = (
        torch.randn(*shape, device="cuda", generator=generator, dtype=torch.float32).to(torch.bfloat16)
        for shape in ((M, K), (K, N))
    )
    out = torch.empty(M, N, device="cuda", dtype=torch.bfloat16)
    wide = x.double()
    reference = factor * (wide @ w.double()) * torch.rsqrt(wide.square().mean(1, keepdim=True) + 1e-6)
    try:
        launch = bind_launch(compile_source(made, target, folder), [x, w], [out])
    except BuildError:
        return []
    found = []
    for _ in range(RUNS):
        out.fill_(float("nan"))
        launch()
        found.append(compare([out], [reference])[0][0])
    return found


def is_wrong(error: float) -> bool:
    return not error <= WRONG  # a NaN is wrong too


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_a_tile_that_is_computed_on_and_multiplied(
    stages: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", f"{tmp_path}/triton")
    target = read_target(0)
    for name, form, factor in (("the loaded tile", SHARED, 1.0), ("a new tile", NEW_TILE, 1.5)):
        runs = {tile: errors(source(form, tile, stages), target, tmp_path, factor) for tile in TILES}
        wrong = {tile: sum(map(is_wrong, found)) for tile, found in runs.items() if found}
        bad = {tile: (count, max(runs[tile])) for tile, count in wrong.items() if count}
        print(f"\nNUM_STAGES={stages}, {name}: {len(bad)} of {len(wrong)} tiles wrong {bad or ''}")
        assert wrong
        if stages == 1 or name == "a new tile":
            assert not bad, f"{name} must be right"


def shared_kernel() -> Kernel:
    """An input that is multiplied as it is, by what is computed from the same input."""
    b = GraphBuilder()
    x = b.input(TensorSpec.contiguous((512, 512), "bfloat16"), "x")
    return Kernel("contraction", b.build(b.add("matmul", x, b.add("tanh", x))), "tanh+matmul")


def test_legality_refuses_the_form_that_races() -> None:
    kernel, target = shared_kernel(), Target()
    offered = list(offered_schedules(kernel, target))
    assert offered
    assert all(int(s["BLOCK_M"]) < 64 or s["NUM_STAGES"] == 1 for s in offered)
    wgmma = [schedule.as_dict() for schedule in offered if int(schedule["BLOCK_M"]) >= 64]
    assert wgmma
    for knobs in wgmma:
        schedule = Schedule.of({**knobs, "NUM_STAGES": 3})
        assert "a race" in str(illegal_because(kernel, schedule, target))


def test_what_legality_lets_through_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", f"{tmp_path}/triton")
    kernel, target = shared_kernel(), read_target(0)
    x = torch.randn(512, 512, device="cuda").to(torch.bfloat16)
    out = torch.empty(512, 512, device="cuda", dtype=torch.bfloat16)
    reference = x.double() @ torch.tanh(x).double()
    offered = list(offered_schedules(kernel, target))
    for schedule in offered[:: max(1, len(offered) // 12)]:
        launch = bind_launch(compile_source(render(kernel, schedule, target), target, tmp_path), [x], [out])
        for _ in range(RUNS):
            out.fill_(float("nan"))
            launch()
            assert not is_wrong(compare([out], [reference])[0][0]), str(schedule)
