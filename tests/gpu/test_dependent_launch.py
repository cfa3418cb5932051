"""Programmatic dependent launch gives the same bits as plain launches, replay after replay, and what it saves."""

from __future__ import annotations

import random
import statistics
from pathlib import Path

import pytest
import torch

from engine.codegen import offered_schedules, render, with_dependent_launch
from engine.grouping import grouping_space
from engine.ir import Graph, GraphBuilder, Kernel, TensorSpec
from engine.ir.extern import arguments_to_json
from engine.ir.plan import Grouping
from engine.measure import CudaDevice
from engine.runtime import BuildError, CompiledSource, TimingPlan, compile_source, make_inputs, poison, time_launches
from engine.runtime.assemble import AssembledPlan, assemble_plan
from engine.runtime.comparison import same_bits
from engine.runtime.cuda_graph import capture, quantiles
from engine.runtime.toolchain import read_target
from engine.vocabulary import Option, Regime, Schedule, Status, Target

REPLAYS = 40


def layers(rows: int, width: int, count: int) -> Graph:
    """A norm, a matmul and a residual, again and again: each kernel needs all of what the one before wrote."""
    b = GraphBuilder()
    h = b.input(TensorSpec.contiguous((rows, width), "bfloat16"), "x")
    weights = [b.input(TensorSpec.contiguous((width, width), "bfloat16"), f"w{i}") for i in range(count)]
    for weight in weights:
        wide = b.add("cast", h, dtype="float32")
        mean = b.add("mean", b.add("mul", wide, wide), axes=(1,))
        scale = b.add("rsqrt", b.add("add", mean, b.constant(1e-6)))
        normal = b.add("cast", b.add("mul", wide, scale), dtype="bfloat16")
        h = b.add("add", b.add("matmul", normal, weight), h)
    return b.build(h)


def divided(graph: Graph) -> Grouping:
    """The grouping that keeps norm, matmul and residual apart wherever that is asked."""
    space = grouping_space(graph)
    path: tuple[Option, ...] = ()
    while (fork := space.fork(path)) is not None:
        apart = [option for option in fork.options if "apart" in str(option)]
        path = (*path, (apart or list(fork.options))[0])
    return space.grouping(path)


def compiled_kernel(kernel: Kernel, target: Target, folder: Path, seed: int) -> tuple[CompiledSource, CompiledSource]:
    """Some legal schedule of the kernel, without and with dependent launch."""
    offered = list(offered_schedules(kernel, target))
    for schedule in random.Random(seed).sample(offered, min(len(offered), 20)):
        source = render(kernel, schedule, target)
        try:
            return (
                compile_source(source, target, folder),
                compile_source(with_dependent_launch(source), target, folder),
            )
        except BuildError:
            continue
    raise AssertionError(f"no schedule of {kernel.label} compiles")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rows", [32, 512])
def test_the_bits_are_those_of_plain_launches(
    rows: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", f"{tmp_path}/triton")
    grouping = divided(layers(rows, 1024, 4))
    target = read_target(0)
    kernels = {key: kernel for key, (kernel, _) in grouping.kernel_counts().items()}
    pairs = {key: compiled_kernel(kernel, target, tmp_path, seed) for key, kernel in kernels.items()}
    inputs = make_inputs(grouping.input_specs(), 0, torch.device("cuda"))
    plain = assemble_plan(grouping, {key: pair[0] for key, pair in pairs.items()}, inputs)
    dependent = assemble_plan(grouping, {key: pair[1] for key, pair in pairs.items()}, inputs)
    assert all(pair[1].kernel.metadata.launch_pdl for pair in pairs.values())
    poison(plain.written)
    plain.launch()
    torch.cuda.synchronize()
    wrong = sum(not _replayed_alike(dependent, plain) for _ in range(REPLAYS))
    plan = TimingPlan(window_ms=2.0, windows=15, warmup_ms=50.0)
    times = [quantiles(time_launches(one.launch, plan, 100.0))[0] for one in (plain, dependent)]
    print(
        f"\n{rows} rows, seed {seed}, {len(grouping.calls)} launches: {wrong} of {REPLAYS} replays differ, "
        f"plain {times[0]:.2f} us, with dependent launch {times[1]:.2f} us"
    )
    assert wrong == 0
    assert same_bits(dependent.outputs, plain.outputs), "also after many replays behind one another"


def _replayed_alike(plan: AssembledPlan, expected: AssembledPlan) -> bool:
    """Whether one replay, of three copies of the plan behind one another, gives the same bits in every buffer."""
    plan.launch()
    graph = capture(plan.launch, 3)
    poison(plan.written)
    graph.replay()
    torch.cuda.synchronize()
    return same_bits(plan.written, expected.written)


def some_schedules(grouping: Grouping, device: CudaDevice) -> dict[str, Schedule]:
    """For each kernel the first of some schedules that passes alone."""
    found: dict[str, Schedule] = {}
    for key, (kernel, _) in grouping.kernel_counts().items():
        offered = list(offered_schedules(kernel, device.target))
        tried = random.Random(0).sample(offered, min(len(offered), 8))
        futures = [device.submit(kernel, schedule, Regime.DEPLOY) for schedule in tried]
        passed = [done for done in (future.result(timeout=300) for future in futures) if done.status is Status.OK]
        assert passed, f"no schedule of {kernel.label} passes"
        found[key] = min(passed, key=lambda done: done.us or 0.0).schedule
    return found


def test_the_device_assembles_both_ways(device: CudaDevice) -> None:
    graph = layers(512, 1024, 4)
    grouping = divided(graph)
    schedules = some_schedules(grouping, device)
    results = [device.assemble(grouping, schedules, graph, pdl=pdl) for pdl in (False, True)]
    print(f"\nplain, dependent: {[(r.timing and round(r.timing.median_us, 2), r.error, r.failure) for r in results]}")
    assert all(result.failure is None for result in results)
    assert results[0].error == results[1].error


@pytest.mark.parametrize("pdl", [False, True])
def test_a_graph_in_turns_with_itself_takes_its_time(device: CudaDevice, pdl: bool) -> None:
    graph = layers(512, 1024, 4)
    grouping = divided(graph)
    schedules = some_schedules(grouping, device)
    times = device.compare_graphs(grouping, [schedules, schedules], graph, pdl=pdl)
    assert times.failure is None
    first, second = (statistics.median(windows) for windows in times.windows)
    alone = device.assemble(grouping, schedules, graph, pdl=pdl).timing
    assert alone is not None
    print(f"\nin turns {first:.2f} and {second:.2f} us, by itself {alone.median_us:.2f} us")
    assert second == pytest.approx(first, rel=0.02)
    assert first == pytest.approx(alone.median_us, rel=0.05)


def with_library_calls() -> Graph:
    """A convolution and a running sum between generated kernels."""
    b = GraphBuilder()
    x = b.input(TensorSpec.contiguous((1, 64, 256), "bfloat16"), "x")
    weight = b.input(TensorSpec.contiguous((64, 64, 3), "bfloat16"), "w")
    call = arguments_to_json([{"tensor": 0}, {"tensor": 1}, None, [1], [1], [1], False, [0], 1], {})
    spec = TensorSpec.contiguous((1, 64, 256), "bfloat16")
    convolved = b.extern("aten.convolution.default", (b.add("relu", x), weight), call, spec)
    summed = b.extern(
        "aten.cumsum.default", (b.add("tanh", convolved),), arguments_to_json([{"tensor": 0}, 2], {}), spec
    )
    return b.build(b.add("sigmoid", summed))


def test_library_calls_are_measured_and_captured(device: CudaDevice) -> None:
    graph = with_library_calls()
    grouping = divided(graph)
    schedules = some_schedules(grouping, device)
    called = [call.kernel for call in grouping.calls if call.kernel.family == "extern"]
    assert len(called) == 2
    for kernel in called:
        done = device.submit(kernel, Schedule.of({}), Regime.DEPLOY).result(timeout=300)
        print(f"\n{kernel.label}: {done.us} us, {done.error}, {done.failure}")
        assert done.status is Status.OK
    results = [device.assemble(grouping, schedules, graph, pdl=pdl) for pdl in (False, True)]
    print(f"plain, dependent: {[(r.timing and round(r.timing.median_us, 2), r.error, r.failure) for r in results]}")
    assert all(result.failure is None for result in results)
