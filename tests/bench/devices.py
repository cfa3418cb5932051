"""The same tune on one GPU and on several: how much faster it is, and whether bests and totals agree.

    python -m tests.bench.devices [--devices 0,1] [--patience 50] [--code TEXT | --target LINE] [--lose-after N]

Four runs: one GPU and all GPUs, each from an empty database; then each database again with the other number of GPUs,
which must launch nothing and find exactly the same bests and total. Two runs from empty databases differ by the noise
of their times, so of those the ratio of the totals is printed. With --lose-after, the last GPU of a fifth run, from an
empty database, is closed in the middle of its search, at its candidate number N.

Exit code 1 if what must be equal differs, if fewer than six kernels were tuned, or if a lost GPU loses results.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

from engine.events import Event, GroupingScored, KernelFinished, Logged, RunFinished
from engine.ir.kernel import Kernel
from engine.measure import Device, DeviceError, open_device
from engine.session import TuningSession
from engine.tune import LiveRequest, Settings, tune_live
from engine.vocabulary import Measurement, Regime, Schedule

WIDTHS = (512, 1024, 2048, 1536, 3072, 768, 2560, 1280, 1792, 2304, 896, 3328, 640)
FEWEST_KERNELS = 6


def chain() -> str:
    """Twelve matmuls of twelve shapes in a row."""
    value = f"torch.randn(2048, {WIDTHS[0]}, device='cuda', dtype=torch.bfloat16)"
    for inner, width in pairwise(WIDTHS):
        weight = f"torch.randn({inner}, {width}, device='cuda', dtype=torch.bfloat16)"
        value = f"torch.matmul({value}, {weight})"
    return value


@dataclass(slots=True)
class Gpus:
    """Opens GPUs and keeps them; the last one closes at its candidate number `lose_after`."""

    names: tuple[str, ...]
    lose_after: int | None = None
    opened: list[Device] = field(default_factory=list)

    def open(self, name: str, jobs: int | None, beside: Device | None = None) -> Device:
        device = open_device(name, jobs=jobs, beside=beside)
        self.opened.append(device)
        if self.lose_after is not None and name == self.names[-1]:
            _close_at(device, self.lose_after)
        return device


def _close_at(device: Device, number: int) -> None:
    """Have the device close itself while it works on its candidate `number`."""
    plain, asked = device.submit, iter(range(1, 10**9))

    def submit(kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        answer = plain(kernel, schedule, regime)
        if next(asked) == number:
            threading.Thread(target=device.close).start()
        return answer

    device.submit = submit  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True)
class Result:
    """One run: its summary, each kernel's best (us and schedule), the sums of its groupings, what it warned of."""

    summary: RunFinished
    bests: dict[str, tuple[float | None, str]]
    sums: tuple[float | None, ...]
    warnings: tuple[str, ...]
    idle: dict[str, float]


def tuned(code: str, database: Path, gpus: Gpus, settings: Settings) -> Result:
    """Raises DeviceError with the sentence of a run that failed."""
    request = LiveRequest(code, database, ",".join(gpus.names), "", gpus.open)
    events: list[Event] = []
    with TuningSession(partial(tune_live, request), settings) as session:
        session.start()
        while not session.wait(0.2):
            events += session.drain(10**6)
        events += session.drain(10**6)
    if session.failure is not None or session.summary is None:
        raise DeviceError(session.failure or "the run has no summary")
    wall = session.summary.wall_s
    return Result(
        session.summary,
        {e.kernel: (e.best_us, e.best_schedule) for e in events if isinstance(e, KernelFinished)},
        tuple(e.sum_us for e in events if isinstance(e, GroupingScored)),
        tuple(e.text for e in events if isinstance(e, Logged) and e.level == "warning"),
        {device.name: max(0.0, 1.0 - device.health().busy_s / wall) for device in gpus.opened},
    )


def report(title: str, result: Result) -> None:
    summary = result.summary
    idle = ", ".join(f"{name} {share:.0%}" for name, share in result.idle.items())
    print(
        f"{title:34} {summary.wall_s:7.1f} s  {summary.measured:5} measured {summary.cached:5} served"
        f"  {len(result.bests):3} kernels  sum {summary.sum_us or 0:9.2f} us"
        f"  assembled {summary.assembled_us or 0:9.2f} us  idle: {idle}",
        flush=True,
    )
    for warning in result.warnings:
        print(f"{'':34} {warning}")


def same(first: Result, second: Result) -> bool:
    """Whether the second run was served the first one's results, all of them."""
    found = (first.bests, first.sums, first.summary.sum_us, first.summary.assembled_us)
    served = (second.bests, second.sums, second.summary.sum_us, second.summary.assembled_us)
    print(f"{'':34} {'bests and total agree' if found == served else 'BESTS OR TOTAL DIFFER'}")
    return found == served and second.summary.measured == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="0,1")
    parser.add_argument("--patience", type=int, default=50)
    parser.add_argument("--jobs", type=int, help="compile processes of a run, shared by its GPUs")
    parser.add_argument("--code", default=chain())
    parser.add_argument("--target", help="a model line instead of code, with all of its options written out")
    parser.add_argument("--lose-after", type=int)
    options = parser.parse_args()
    code = options.target or options.code
    names = tuple(f"cuda:{int(number)}" for number in options.devices.split(","))
    settings = Settings(patience=options.patience, jobs=options.jobs)
    with tempfile.TemporaryDirectory() as folder:
        one, several = Path(folder) / "one.db", Path(folder) / "several.db"
        runs: list[Result] = []
        for title, database, gpus in (("one GPU", one, names[:1]), (f"{len(names)} GPUs", several, names)):
            runs.append(tuned(code, database, Gpus(gpus), settings))
            report(f"{title}, empty database", runs[-1])
        speed = runs[0].summary.wall_s / runs[1].summary.wall_s
        rate = speed * (runs[1].summary.measured or 1) / (runs[0].summary.measured or 1)
        total = (runs[1].summary.sum_us or 0.0) / (runs[0].summary.sum_us or 1.0)
        print(f"speed-up {speed:.2f}x by wall time, {rate:.2f}x by candidates a second; totals {total:.3f} apart")
        equal = True
        for first, title, database, gpus in (
            (runs[0], f"{len(names)} GPUs on one GPU's database", one, names),
            (runs[1], f"one GPU on {len(names)} GPUs' database", several, names[:1]),
        ):
            again = tuned(code, database, Gpus(gpus), settings)
            report(title, again)
            equal = same(first, again) and equal
        if options.lose_after is not None:
            lost = tuned(code, Path(folder) / "lost.db", Gpus(names, options.lose_after), settings)
            report(f"{names[-1]} closed at {options.lose_after}", lost)
            equal = equal and lost.summary.sum_us is not None and any(" is lost " in text for text in lost.warnings)
    return int(not equal or min(len(run.bests) for run in runs) < FEWEST_KERNELS)


if __name__ == "__main__":
    sys.exit(main())
