"""Records landscapes on a GPU: many legal schedules of chosen kernels, drawn evenly, timed in the ranking regime.

    python -m tests.bench.record_landscapes DB [--each N] [--seconds S] [--only TEXT] [--list]

One fully fused kernel a program. Failures are recorded like times, so that a search over the database meets what a
search on the GPU meets. What the database holds already is not measured again.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from engine.capture import capture
from engine.codegen import offered_schedules
from engine.events import RunState
from engine.grouping import grouping_space
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping, Program
from engine.measure import Device, open_device
from engine.store import RunInfo, Store
from engine.vocabulary import Measurement, Option, Regime, Schedule, Target

IN_FLIGHT = 96
"""Enough candidates under way to keep a compiler on every core."""


def _draw(*shape: int, dtype: str = "bfloat16") -> str:
    return f"torch.randn({', '.join(map(str, shape))}, dtype=torch.{dtype}, device='cuda')"


def _attention(batch: int, heads: int, kv_heads: int, queries: int, keys: int, size: int, causal: bool) -> str:
    q, kv = _draw(batch, heads, queries, size), _draw(batch, kv_heads, keys, size)
    grouped = ", enable_gqa=True" if heads != kv_heads else ""
    return f"F.scaled_dot_product_attention({q}, {kv}, {kv}, is_causal={causal}{grouped})"


PROGRAMS = {
    "matmul square": f"torch.matmul({_draw(2048, 2048)}, {_draw(2048, 2048)})",
    "matmul skinny": f"F.linear({_draw(512, 1024)}, {_draw(3072, 1024)})",
    "matmul decode": f"F.linear({_draw(16, 2048)}, {_draw(4096, 2048)})",
    "gate and up": (
        f"(lambda x: F.silu(F.linear(x, {_draw(3072, 1024)})) * F.linear(x, {_draw(3072, 1024)}))({_draw(256, 1024)})"
    ),
    "matmul of a scaled input": f"F.linear({_draw(1024, 1024)} * {_draw(1024, 1)}, {_draw(2048, 1024)})",
    "attention causal": _attention(1, 16, 8, 1024, 1024, 128, True),
    "attention full": _attention(4, 12, 12, 512, 512, 64, False),
    "softmax narrow": f"torch.softmax({_draw(65536, 384)}, dim=-1)",
    "softmax wide": f"torch.softmax({_draw(2048, 32768)}, dim=-1)",
    "rms_norm narrow": f"F.rms_norm({_draw(4096, 1024)}, (1024,), {_draw(1024)})",
    "layer_norm wide": f"F.layer_norm({_draw(4096, 12288)}, (12288,), {_draw(12288)}, {_draw(12288)})",
    "matmul fp32": f"torch.matmul({_draw(512, 512, dtype='float32')}, {_draw(512, 512, dtype='float32')})",
}


def fused(program: Program) -> Grouping:
    """The grouping that fuses at every fork."""
    space = grouping_space(program.graph)
    path: tuple[Option, ...] = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, next((o for o in fork.options if "apart" not in dict(o.knobs).values()), fork.options[0]))
    return space.grouping(path)


def drawn(kernel: Kernel, target: Target, most: int) -> list[Schedule]:
    """At most so many of the kernel's legal schedules, drawn evenly, in an order of their own."""
    offered = list(offered_schedules(kernel, target))
    return random.Random(0).sample(offered, min(most, len(offered)))


def answers(device: Device, kernel: Kernel, schedules: list[Schedule], until: float) -> Iterator[Measurement]:
    """Measurements in the order of `schedules`, until the clock says `until`."""
    waiting: deque[Future[Measurement]] = deque()
    coming = iter(schedules)
    while True:
        while len(waiting) < IN_FLIGHT and time.monotonic() < until and (schedule := next(coming, None)) is not None:
            waiting.append(device.submit(kernel, schedule, Regime.RANKING))
        if not waiting:
            return
        yield waiting.popleft().result()


def record(store: Store, device: Device, name: str, code: str, most: int, seconds: float) -> str:
    """Record one landscape; a line on how it went."""
    context, target = device.context, device.target
    program = capture(code)
    grouping = fused(program)
    kernel = max((call.kernel for call in grouping.calls), key=lambda one: (one.flops, one.bytes_moved))
    info = RunInfo(code, program, "cuda:0", context.gpu, context.key, 0, most, "none")
    run = store.start_run(info)
    store.record_kernel(kernel)
    store.record_grouping(run, grouping)
    schedules = [s for s in drawn(kernel, target, most) if store.ranking(kernel.key, s, context.key) is None]
    began, failed, done, best = time.monotonic(), 0, 0, float("inf")
    for done, got in enumerate(answers(device, kernel, schedules, began + seconds), start=1):
        store.record_measurement(got, run=run, trial=done, nodes=())
        failed += got.us is None
        best = min(best, got.us if got.us is not None else best)
    store.end_run(run, RunState.FINISHED, "{}")
    took = time.monotonic() - began
    counts = f"{done} of {len(schedules)}, {failed} failed"
    return f"{name}: {kernel.label} {kernel.shape_text}: {counts}, best {best:.2f} us, {took:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", type=Path)
    parser.add_argument("--each", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=600.0, help="at most so long a kernel")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true", help="say how large each space is, and measure nothing")
    asked = parser.parse_args()
    chosen = {name: code for name, code in PROGRAMS.items() if asked.only in name}
    if asked.list:
        for name, code in chosen.items():
            grouping = fused(capture(code))
            for call in grouping.calls:
                size = sum(1 for _ in offered_schedules(call.kernel, Target()))
                print(f"{name}: {call.kernel.label} {call.kernel.shape_text}: {size} legal schedules", flush=True)
        return
    device = open_device("cuda:0")
    try:
        with Store.open(asked.database) as store:
            store.record_context(device.context, device.target)
            for name, code in chosen.items():
                print(record(store, device, name, code, asked.each, asked.seconds), flush=True)
    finally:
        device.close()


if __name__ == "__main__":
    main()
