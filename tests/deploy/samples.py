"""A database with a matmul and a relu that were measured on one GPU, for what is carried to another."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

from engine.codegen import offered_schedules
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.plan import Program
from engine.store import RunInfo, Store
from engine.vocabulary import BuildReport, Context, Measurement, Regime, Schedule, Status, Target, Timing

HERE = Context("NVIDIA H200", "9.0", "580.1", "2.13.0", "3.6.0", "12.8")
THERE = replace(HERE, gpu="NVIDIA B200", capability="10.0")
OLDER = replace(HERE, triton="3.5.0")


def matmul(size: int = 256) -> Kernel:
    build = GraphBuilder()
    left, right = (build.input(TensorSpec.contiguous((size, size), "float32"), name) for name in "xw")
    return Kernel("contraction", build.build(build.add("matmul", left, right)), "matmul")


def relu() -> Kernel:
    build = GraphBuilder()
    value = build.input(TensorSpec.contiguous((64, 64), "float32"), "x")
    return Kernel("pointwise", build.build(build.add("relu", value)), "relu")


def schedules(kernel: Kernel, count: int) -> list[Schedule]:
    return list(islice(offered_schedules(kernel, Target()), 0, 11 * count, 11))


def result(kernel: Kernel, schedule: Schedule, us: float, context: Context, regime: Regime) -> Measurement:
    timing = Timing(us, us - 0.5, us + 0.5, (us,))
    build = BuildReport(96, 0, 49152, 1.5)
    return Measurement(kernel.key, schedule, regime, context.key, Status.OK, timing, None, build, 1e-6, 0.2)


def fill(path: Path, context: Context = HERE, size: int = 256) -> Path:
    """Four ranking times of each kernel, and a deploy time of the fastest."""
    kernels = (matmul(size), relu())
    with Store.open(path) as store:
        store.record_context(context, Target())
        for kernel in kernels:
            store.record_kernel(kernel)
        program = Program(kernels[0].body, "torch.matmul(x, w)", "cuda")
        info = RunInfo(
            program.target, program, "cuda:0", context.gpu, context.key, 0, 50, "cold-1", "emmy tune --code x"
        )
        run = store.start_run(info)
        for kernel in kernels:
            for number, schedule in enumerate(schedules(kernel, 4)):
                store.record_measurement(result(kernel, schedule, 10.0 + number, context, Regime.RANKING), run=run)
            deployed = result(kernel, schedules(kernel, 1)[0], 9.5, context, Regime.DEPLOY)
            store.record_measurement(deployed, run=run)
        store.end_run(run, "finished")
    return path
