"""Candidates of every family on the GPU: right, timed sanely, and compiled only once, ahead of the benchmark."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from engine.codegen import offered_schedules, render
from engine.ir.kernel import Kernel
from engine.ir.plan import BufferView, Grouping, KernelCall
from engine.measure import CudaDevice
from engine.runtime import TimingPlan, compile_source, make_inputs, quantiles, time_launches
from engine.runtime.assemble import empty_buffer
from engine.runtime.launch import bind_launch
from engine.runtime.toolchain import read_context, read_target
from engine.vocabulary import FailureKind, Measurement, Regime, Schedule, Status
from tests.gpu.bodies import add, matmul, rms_norm, silu_product

KERNELS = [
    matmul(512, 512, 512, "float32"),
    matmul(1024, 1024, 1024, "bfloat16"),
    matmul(1000, 520, 300, "float16"),
    rms_norm(16384, 4096),
    silu_product(4096, 4096),
]
TOLD = {FailureKind.SHARED_MEMORY, FailureKind.REGISTERS, FailureKind.COMPILE_ERROR}
"""What an offered schedule may fail of without anything being wrong with the measuring."""


def spread(kernel: Kernel, device: CudaDevice, count: int) -> list[Schedule]:
    offered = list(offered_schedules(kernel, device.target))
    return offered[:: max(1, len(offered) // count)][:count]


def measure_all(device: CudaDevice, kernel: Kernel, schedules: list[Schedule], regime: Regime) -> list[Measurement]:
    futures = [device.submit(kernel, schedule, regime) for schedule in schedules]
    return [future.result(timeout=300) for future in futures]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.label} {kernel.shape_text}")
def test_offered_schedules_are_right_and_timed(device: CudaDevice, kernel: Kernel) -> None:
    results = measure_all(device, kernel, spread(kernel, device, 24), Regime.RANKING)
    failures = Counter(str(r.failure) for r in results if r.failure)
    print(f"\n{kernel.label} {kernel.shape_text}: {len(results)} candidates, failures {dict(failures)}")
    assert [f"{r.schedule}: {r.failure}" for r in results if r.failure and r.failure.kind not in TOLD] == []
    good = sorted((r for r in results if r.status is Status.OK), key=lambda r: r.us or 0)
    assert good, dict(failures)
    best = good[0]
    again = measure_all(device, kernel, [best.schedule], Regime.DEPLOY)[0]
    assert again.timing is not None, again.failure
    assert best.timing is not None
    spread_of = (again.timing.high_us - again.timing.low_us) / again.timing.median_us
    print(
        f"  best {best.us:.2f} us ranking, {again.us:.2f} us deploy (spread {spread_of:.1%}), "
        f"error {best.error:.1e}, {best.build}, worker {best.run_s:.3f} s, {best.schedule}"
    )
    assert again.timing.median_us == pytest.approx(best.timing.median_us, rel=0.25)
    assert best.build.registers
    assert device.health().respawns == 0, device.health().respawned


def test_the_benchmark_process_does_not_compile(device: CudaDevice) -> None:
    kernel = silu_product(2048, 2048)
    results = measure_all(device, kernel, spread(kernel, device, 8), Regime.RANKING)
    run_s = sorted(r.run_s or 0 for r in results)
    print(f"\nworker seconds a candidate: {run_s}")
    assert run_s[len(run_s) // 2] < 0.2


def test_context_and_target_are_of_this_gpu(device: CudaDevice) -> None:
    print(f"\n{device.context}\n{device.target}")
    assert device.context == read_context(0)
    assert device.target == read_target(0)
    assert device.context.gpu == torch.cuda.get_device_name(0)
    assert all((device.context.driver, device.context.ptxas, device.context.torch, device.context.triton))


def test_times_agree_with_those_of_another_process_and_beside_torch(
    device: CudaDevice, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = matmul(2048, 2048, 2048, "bfloat16")
    results = measure_all(device, kernel, spread(kernel, device, 40), Regime.RANKING)
    best = min((r for r in results if r.us), key=lambda r: r.us or 0)
    monkeypatch.setenv("TRITON_CACHE_DIR", f"{tmp_path}/triton")
    source = render(kernel, best.schedule, device.target)
    compiled = compile_source(source, device.target, tmp_path)  # type: ignore[arg-type]
    inputs = make_inputs(kernel.body.input_specs(), 0, "cuda")
    outputs = [empty_buffer(spec, "cuda") for spec in kernel.body.output_specs()]
    plan = TimingPlan(window_ms=2.0, windows=15, warmup_ms=50.0)
    ours, _, _ = quantiles(time_launches(bind_launch(compiled, inputs, outputs), plan, 30.0))
    peer_out = torch.empty_like(outputs[0])
    torch.mm(*inputs, out=peer_out)

    def multiply() -> None:
        torch.mm(*inputs, out=peer_out)

    peer, _, _ = quantiles(time_launches(multiply, plan, 30.0))
    print(f"\n2048^3 bf16: worker {best.us:.2f}, here {ours:.2f}, torch.mm {peer:.2f} us, ratio {peer / ours:.2f}")
    assert ours == pytest.approx(best.us, rel=0.15)
    assert torch.allclose(outputs[0], peer_out, rtol=2e-2, atol=2e-1)


def test_an_assembled_plan_is_its_kernels(device: CudaDevice) -> None:
    kernel = add(1 << 22)
    schedule = spread(kernel, device, 1)[0]
    alone = measure_all(device, kernel, [schedule], Regime.DEPLOY)[0]
    (x, y), (out,) = kernel.body.input_specs(), kernel.body.output_specs()
    calls = (
        KernelCall(kernel, (BufferView(0, x), BufferView(1, y)), (2,)),
        KernelCall(kernel, (BufferView(2, x), BufferView(1, y)), (3,)),
        KernelCall(kernel, (BufferView(3, x), BufferView(2, y)), (4,)),
    )
    result = device.assemble(Grouping((x, y, out, out, out), calls, (BufferView(4, out),)), {kernel.key: schedule})
    assert result.failure is None, result
    assert result.timing is not None
    assert alone.us is not None
    print(f"\nthree launches: sum {3 * alone.us:.2f} us, assembled {result.timing.median_us:.2f} us")
    assert 0.5 < result.timing.median_us / (3 * alone.us) < 2
    assert result.error is not None
    assert result.error < 1e-6


def test_two_regimes_of_one_candidate_agree(device: CudaDevice) -> None:
    kernel = rms_norm(16384, 4096)
    schedule = spread(kernel, device, 3)[1]
    times = [measure_all(device, kernel, [schedule], regime)[0].us for regime in (*Regime, *Regime)]
    print(f"\nranking, deploy, ranking, deploy: {times}")
    assert max(t or 0 for t in times) < 1.15 * min(t or 0 for t in times)
