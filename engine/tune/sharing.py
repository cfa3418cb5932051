"""One controls file for several shapes of a kernel: the one that helps most in the geometric mean over the shapes.

Kernels of one family and label are one kernel in several shapes; those that the database knows in this context join
those of the run. Every file is timed on each shape's best schedule without controls; one that fails on a shape is out.
The best is then confirmed on every shape by the rules for any controls, and used for all of them or for none: where it
makes one shape slower, or wins on none, nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass

from engine.codegen import is_generated
from engine.events import Compared
from engine.ir.kernel import Kernel
from engine.measure import Difference, PairedTimes, differences
from engine.tune.control import Stopped
from engine.tune.controlled import ControlledProblem, ControlsMode
from engine.tune.finalists import numbers_of
from engine.tune.kernel import KernelResult
from engine.tune.problem import Problem
from engine.tune.sweeping import submit_ranking
from engine.tune.workbench import Workbench, answered
from engine.vocabulary import Measurement, Regime, Schedule, Status, Verdict

PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Shape:
    """A kernel in one shape, with its best schedule without controls."""

    kernel: Kernel
    schedule: Schedule

    def with_file(self, sha256: str) -> Schedule:
        """The same schedule, assembled with a controls file."""
        return Schedule.of({**self.schedule.as_dict(), "ACF": sha256})


def share_controls(bench: Workbench, problem: Problem, tuned: Sequence[KernelResult]) -> None:
    """Look for the one file of each kernel that has several shapes, where that was asked for; tell what came of it.

    Raises Stopped, DeviceError.
    """
    if not isinstance(problem, ControlledProblem) or problem.mode is not ControlsMode.SHARED:
        return
    found = False
    for shapes in families(bench, tuned):
        found = True
        _shared(bench, problem, shapes)
    if not found:
        bench.log("no kernel has several shapes in this run and database: no controls file is shared", "warning")


def families(bench: Workbench, tuned: Sequence[KernelResult]) -> list[list[Shape]]:
    """The kernels of the run that have several shapes, here or in the database; shapes in the order of their keys."""
    groups: dict[tuple[str, str], dict[str, Shape]] = {}
    for item in tuned:
        kernel = item.kernel
        if item.schedule is not None and is_generated(kernel) and kernel.foreign is None:
            group = groups.setdefault((kernel.family, kernel.label), {})
            group.setdefault(kernel.key, Shape(kernel, item.schedule))
    for group in groups.values():
        for other, schedule in bench.recorder.same_kernels(next(iter(group.values())).kernel):
            if other.foreign is None:
                group.setdefault(other.key, Shape(other, schedule))
    return [[group[key] for key in sorted(group)] for group in groups.values() if len(group) > 1]


def _shared(bench: Workbench, problem: ControlledProblem, shapes: Sequence[Shape]) -> None:
    offered = problem.judgement.offered
    name = shapes[0].kernel.label or shapes[0].kernel.family
    plain = _measured(bench, [(shape.kernel, shape.schedule) for shape in shapes])
    times: dict[str, list[float | None]] = {}
    for sha256 in offered:
        times[sha256] = _measured(bench, [(shape.kernel, shape.with_file(sha256)) for shape in shapes])
    best = _best(plain, times)
    if best is None:
        bench.log(f"{name}: none of {len(offered)} controls files is faster over its {len(shapes)} shapes together")
        return
    found = [_compared(bench, shape, best, len(offered)) for shape in shapes]
    file = next((file.name for file in problem.controls.files if file.sha256 == best), best[:12])
    wins = _wins(found)
    for shape, turns in zip(shapes, found, strict=True):
        _tell(bench, shape, best, turns, wins=wins, tried=len(offered))
        if turns is not None:
            bench.log(f"{name} {shape.kernel.shape_text}: {file} {_text(turns[0])}, itself {_text(turns[1])}")
    timed = [turns[0] for turns in found if turns is not None]
    mean = math.exp(sum(math.log(one.ratio) for one in timed) / len(timed)) if timed else 1.0
    outcome = "is used for all" if wins else "is used for none: not confirmed on all of them"
    bench.log(f"{name}: {file} over {len(shapes)} shapes together takes {mean:.3f}x the time without and {outcome}")


def _measured(bench: Workbench, asked: Sequence[tuple[Kernel, Schedule]]) -> list[float | None]:
    """Ranking times in us, in order; None for what failed. What is known already is not measured again."""
    answers: list[Future[Measurement]] = []
    for kernel, schedule in asked:
        known = bench.recorder.ranking(kernel, schedule)
        new = submit_ranking(bench.device, kernel, schedule, bench.misranked) if known is None else answered(known)
        answers.append(new)
    return [_kept(bench, answer) for answer in answers]


def _kept(bench: Workbench, answer: Future[Measurement]) -> float | None:
    while not answer.done():
        bench.checkpoint()
        wait([answer], timeout=0.1)
    try:
        measurement = answer.result()
    except CancelledError:
        raise Stopped from None
    if measurement.status is Status.NOT_RECORDED:
        return None
    bench.recorder.record(measurement, run=bench.run, trial=0, nodes=())
    bench.tally.count(measurement)
    bench.tell_measured(measurement, node="", trial=0, best=False)
    return measurement.us


def _best(plain: Sequence[float | None], times: Mapping[str, Sequence[float | None]]) -> str | None:
    """The file with the least geometric mean over the shapes, if that is less than without; equal ones by sha256."""
    means: list[tuple[float, str]] = []
    for sha256, with_file in times.items():
        ratios = [us / base for us, base in zip(with_file, plain, strict=True) if us and base]
        if len(ratios) == len(plain):
            means.append((sum(map(math.log, ratios)) / len(ratios), sha256))
    mean, best = min(means, default=(0.0, ""))
    return best if mean < 0 else None


def _compared(bench: Workbench, shape: Shape, sha256: str, tried: int) -> tuple[Difference, Difference] | None:
    """The file against none, and none against itself, in turns in fresh processes; None where that can't be timed.

    The deploy time that a deployment reads is taken beside it.
    """
    for schedule in (shape.schedule, shape.with_file(sha256)):
        known = bench.recorder.deploy(shape.kernel, schedule)
        answer = bench.device.submit(shape.kernel, schedule, Regime.DEPLOY) if known is None else answered(known)
        _kept(bench, answer)
    windows = []
    for _ in range(PROCESSES):
        bench.checkpoint()
        times = _turns(bench, shape, sha256)
        if not times.windows:
            return None
        windows.append(times.windows)
    found = differences(windows, bench.noise_share(), tried)
    return found[0], found[1]


def _turns(bench: Workbench, shape: Shape, sha256: str) -> PairedTimes:
    try:
        schedules = [shape.schedule, shape.with_file(sha256), shape.schedule]
        return bench.device.compare(shape.kernel, schedules, fresh=True)
    except CancelledError:
        raise Stopped from None


def _wins(found: Sequence[tuple[Difference, Difference] | None]) -> bool:
    """Faster on one shape at least, slower on none, and each shape's control within the noise."""
    turns = [one for one in found if one is not None]
    if len(turns) < len(found):
        return False
    sound = all(itself.verdict is Verdict.WITHIN_NOISE for _, itself in turns)
    verdicts = {with_file.verdict for with_file, _ in turns}
    mean = sum(math.log(with_file.ratio) for with_file, _ in turns)
    return sound and Verdict.FASTER in verdicts and Verdict.SLOWER not in verdicts and mean < 0


def _tell(
    bench: Workbench,
    shape: Shape,
    sha256: str,
    turns: tuple[Difference, Difference] | None,
    *,
    wins: bool,
    tried: int,
) -> None:
    """Tell and keep the comparison: it is what a deployment decides by."""
    if turns is None:
        return
    found, itself = turns
    keys = (shape.schedule.key, shape.with_file(sha256).key)
    bench.tell(
        Compared,
        kernel=shape.kernel.key,
        schedules=keys,
        chosen=keys[1] if wins else keys[0],
        processes=PROCESSES,
        noise_share=bench.noise_share(),
        **numbers_of([found]),
        tried=tried,
        control_ratio=itself.ratio,
        control_verdict=str(itself.verdict),
    )


def _text(one: Difference) -> str:
    return f"{one.ratio:.3f}x ({one.low:.3f} to {one.high:.3f}), {one.verdict}"
