"""The finalist by a hardware metric: of the candidates near the fastest, the one with the least of it, or the most.

The search itself goes by time, since a reading takes seconds. A candidate with ptxas controls has to be better than the
best without.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.codegen import acf_of
from engine.ir.kernel import Kernel
from engine.measure import Controls, ControlsFile, CounterReader, CountersError
from engine.tune.settings import CounterObjective
from engine.tune.workbench import Workbench
from engine.vocabulary import Measurement

READ = 8
"""Candidates whose metric is read."""


def pick_counted(
    bench: Workbench, kernel: Kernel, measured: Sequence[Measurement], objective: CounterObjective
) -> Measurement | None:
    """The deploy measurement to use; the fastest without controls where no metric can be read. Raises Stopped."""
    timed = sorted((item for item in measured if item.us is not None), key=lambda item: (item.us, item.schedule.key))
    plain = next((item for item in timed if not acf_of(item.schedule)), None)
    if not timed or bench.counters is None:
        return plain
    near = [item for item in timed if (item.us or 0.0) <= (timed[0].us or 0.0) * (1 + bench.settings.deploy_band)]
    found = _read(bench, bench.counters, kernel, near[:READ])
    name = kernel.label or kernel.key
    if not found:
        return plain
    sign = -1.0 if objective.most else 1.0
    # of equal values one without controls, then the faster one
    best = min(found, key=lambda pair: (sign * pair[0], bool(acf_of(pair[1].schedule)), pair[1].us or 0.0))
    wanted = "most" if objective.most else "least"
    bench.log(
        f"{name}: {objective.metric} is {best[0]:g} at {best[1].us:.2f} us, the {wanted} of {len(found)} candidates "
        f"near the fastest, which has {_of(found, timed[0])} at {timed[0].us:.2f} us"
    )
    return best[1]


def _read(
    bench: Workbench, reader: CounterReader, kernel: Kernel, near: Sequence[Measurement]
) -> list[tuple[float, Measurement]]:
    """The metric of each that can be read. A failure is said once."""
    found: list[tuple[float, Measurement]] = []
    reasons: dict[str, None] = {}
    for item in near:
        bench.checkpoint()
        try:
            value = reader.read(kernel, item.schedule, bench.device.target, _index(bench), _controls(bench, item))
            found.append((value, item))
        except CountersError as error:
            reasons.setdefault(str(error))
    for reason in reasons:
        bench.log(f"{kernel.label or kernel.key}: {reason}", "warning")
    return found


def _controls(bench: Workbench, item: Measurement) -> Controls | None:
    """The ptxas of the run and the file of the schedule; None in a run without controls."""
    if bench.assembler is None:
        return None
    acf = acf_of(item.schedule)
    data = bench.recorder.controls_file(acf) if acf else None
    return Controls(bench.assembler, (ControlsFile(acf, data),) if data is not None else ())


def _index(bench: Workbench) -> int:
    digits = bench.device.name.rpartition(":")[2]
    return int(digits) if digits.isdecimal() else 0


def _of(found: Sequence[tuple[float, Measurement]], fastest: Measurement) -> str:
    return next((f"{value:g}" for value, item in found if item is fastest), "no reading")
