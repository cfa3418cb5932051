"""Does a lower ptxas level rank candidates as the deploy regime does, and what does its compiling save?

    python -m tests.bench.regimes [--family contraction] [--candidates 200] [--level 1] [--budget 240] [--jobs N]

Needs a GPU. Of each family, candidates spread over the spaces of its kernels are timed three times: in the ranking
regime at the lower level, in the ranking regime at -O3, and in the deploy regime at -O3, which is the truth. A row
says, for one way of ranking, Spearman's correlation with the truth, how much slower than the best the picked candidate
is (regret@1: its 50th and 90th percentile over random subsets of candidates), and what compiling cost. The row of -O3
says what the noise of short timing alone does: a lower level is as good where its row is.

Families are the kinds of `engine.measure.ranking_kind`. They share the budget (s): a slow one gets fewer candidates
than were asked for, and the table says how many. What a table shows goes into `engine/measure/regimes.py`.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import spearmanr

from engine.codegen import illegal_because, offered_schedules, render
from engine.ir.kernel import Kernel
from engine.measure import REGIMES, CudaDevice
from engine.measure.cuda import CudaSettings
from engine.vocabulary import Measurement, Regime, Schedule, Target
from tests.codegen.attention_bodies import attention
from tests.gpu.bodies import add, matmul, rms_norm, silu_product

CHUNK = 40
"""Candidates that are timed in all three ways before the clock is looked at."""
SUBSETS, SUBSET_SIZE = 400, 48
"""A search sees some dozens of a space's candidates: regret is that of the best of so many, drawn so often."""


def families() -> dict[str, list[Kernel]]:
    """A few kernels of every family, of sizes that a GPU notices."""
    return {
        "contraction": [
            matmul(1024, 1024, 1024, "bfloat16"),
            matmul(4096, 4096, 1024, "bfloat16"),
            matmul(16, 4096, 4096, "bfloat16"),
        ],
        "contraction fp32": [matmul(512, 512, 512, "float32"), matmul(2048, 2048, 1024, "float32")],
        "rowwise": [rms_norm(16384, 4096), rms_norm(2048, 8192)],
        "pointwise": [silu_product(4096, 4096), silu_product(512, 2048), add(1 << 24), add(1 << 20)],
        "attention": [
            Kernel("attention", attention(16, 1024, 1024, 64, "bfloat16"), "attention"),
            Kernel("attention", attention(32, 2048, 2048, 128, "bfloat16", causal=True), "attention causal"),
        ],
    }


@dataclass(frozen=True, slots=True)
class Pass:
    """One timing of every candidate: us or None for each, the wall time in s, and the compilers' seconds, summed."""

    us: tuple[float | None, ...]
    wall_s: float
    compile_s: float


@dataclass(frozen=True, slots=True)
class Row:
    """How one way of ranking a family does against the truth. Regrets are ratios: 1 is the best candidate itself."""

    family: str
    way: str
    candidates: int
    spearman: float
    regret_p50: float
    regret_p90: float
    compile_s: float
    wall_s: float


def drawn(kernels: Sequence[Kernel], target: Target, count: int, seed: int = 0) -> list[tuple[Kernel, Schedule]]:
    """Candidates of all kernels, at least `count` together if their spaces hold so many, the same each time."""
    dice = random.Random(seed)
    spaces = [(kernel, list(offered_schedules(kernel, target))) for kernel in kernels]
    chosen: list[tuple[Kernel, Schedule]] = []
    for position, (kernel, space) in enumerate(sorted(spaces, key=lambda item: len(item[1]))):
        share = -(-(count - len(chosen)) // (len(spaces) - position))
        chosen += [(kernel, schedule) for schedule in dice.sample(space, min(share, len(space)))]
    return chosen


def timed(device: CudaDevice, candidates: Sequence[tuple[Kernel, Schedule]], regime: Regime) -> Pass:
    started = time.perf_counter()
    futures: list[Future[Measurement]] = [device.submit(kernel, schedule, regime) for kernel, schedule in candidates]
    results = [future.result() for future in futures]
    wall_s = time.perf_counter() - started
    return Pass(
        tuple(result.us for result in results), wall_s, sum(result.build.compile_s or 0.0 for result in results)
    )


def compared(
    family: str, way: str, candidates: Sequence[tuple[Kernel, Schedule]], short: Pass, truth: Pass, seed: int = 0
) -> Row:
    """Each kernel is ranked by itself; correlations are averaged over kernels, and subsets are drawn from each."""
    dice = random.Random(seed)
    correlations, regrets, counted = [], [], 0
    for key in dict.fromkeys(kernel.key for kernel, _ in candidates):
        pairs = [
            (a, b)
            for (kernel, _), a, b in zip(candidates, short.us, truth.us, strict=True)
            if kernel.key == key and a is not None and b is not None
        ]
        if len(pairs) < 3:
            continue
        counted += len(pairs)
        correlations.append(float(spearmanr([a for a, _ in pairs], [b for _, b in pairs]).statistic))
        for _ in range(SUBSETS):
            subset = dice.sample(pairs, min(SUBSET_SIZE, len(pairs)))
            regrets.append(min(subset)[1] / min(b for _, b in subset))
    if not regrets:
        return Row(family, way, 0, float("nan"), float("nan"), float("nan"), short.compile_s, short.wall_s)
    p50, p90 = (float(value) for value in np.quantile(regrets, (0.5, 0.9)))
    return Row(family, way, counted, float(np.mean(correlations)), p50, p90, short.compile_s, short.wall_s)


def joined(passes: Sequence[Pass]) -> Pass:
    """Several timings, one after the other, as one."""
    return Pass(
        tuple(us for one in passes for us in one.us),
        sum(one.wall_s for one in passes),
        sum(one.compile_s for one in passes),
    )


def measured(
    family: str,
    kernels: Sequence[Kernel],
    low: CudaDevice,
    plain: CudaDevice,
    options: argparse.Namespace,
    until: float,
) -> list[Row]:
    """The rows of one family, from as many candidates as there is time for until that moment (monotonic s).

    Each level has a device of its own, so that no pass finds binaries of another.
    """
    wanted = drawn(kernels, plain.target, options.candidates)
    random.Random(0).shuffle(wanted)
    short, full, truth = [], [], []
    done = 0
    while done < len(wanted) and (not done or time.monotonic() < until):
        chunk = wanted[done : done + CHUNK]
        short.append(timed(low, chunk, Regime.RANKING))
        full.append(timed(plain, chunk, Regime.RANKING))
        truth.append(timed(plain, chunk, Regime.DEPLOY))
        done += len(chunk)
    candidates = wanted[:done]
    return [
        compared(family, f"ranking -O{options.level}", candidates, joined(short), joined(truth)),
        compared(family, "ranking -O3", candidates, joined(full), joined(truth)),
    ]


def devices(options: argparse.Namespace) -> tuple[CudaDevice, CudaDevice]:
    """One that ranks at the lower level, and one that ranks at -O3."""
    plain = CudaSettings(index=options.device, compilers=options.jobs, ranking_levels={})
    lower = {**REGIMES, Regime.RANKING: replace(REGIMES[Regime.RANKING], ptxas_level=options.level)}
    low = CudaDevice(replace(plain, regimes=lower), render, illegal_because)
    try:
        return low, CudaDevice(plain, render, illegal_because)
    except BaseException:
        low.close()
        raise


def table(rows: Sequence[Row]) -> str:
    head = (
        f"{'family':<16} {'way':<12} {'timed':>6} {'spearman':>9} {'regret p50':>11} {'p90':>7} {'compile s':>10} "
        f"{'wall s':>7}"
    )
    lines = [
        f"{row.family:<16} {row.way:<12} {row.candidates:>6} {row.spearman:>9.4f} {row.regret_p50:>11.4f} "
        f"{row.regret_p90:>7.4f} {row.compile_s:>10.1f} {row.wall_s:>7.1f}"
        for row in rows
    ]
    return "\n".join([head, *lines])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=sorted(families()), action="append", help="may be repeated; default: all")
    parser.add_argument("--candidates", type=int, default=200, help="of a family, over its kernels")
    parser.add_argument("--level", type=int, default=1, choices=(0, 1, 2), help="the lower ptxas level")
    parser.add_argument("--budget", type=float, default=240.0, help="seconds for all families together")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compile processes")
    parser.add_argument("--device", type=int, default=0)
    options = parser.parse_args()
    rows: list[Row] = []
    chosen = [(family, kernels) for family, kernels in families().items() if family in (options.family or families())]
    start = time.monotonic()
    low, plain = devices(options)
    with low, plain:
        for number, (family, kernels) in enumerate(chosen):
            now = time.monotonic()
            share = (start + options.budget - now) / (len(chosen) - number)
            rows += measured(family, kernels, low, plain, options, now + share)
            print(table(rows[-2:]), flush=True)
    print(f"\n{table(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
