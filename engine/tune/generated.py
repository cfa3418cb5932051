"""Controls files evolved for one schedule: a generation is a search of its own, and its times breed the next one.

Each candidate takes the way of every other one: accepted by ptxas first, checked against the reference, timed, and
among the finalists only if it is fast; the number tried, over all generations, corrects the proof that it wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.ir.kernel import Kernel
from engine.measure import Controls, ControlsFile, GeneratorError, GeneratorRequest, TakesControls, judge
from engine.store import AcceptanceRow
from engine.tune.workbench import Workbench
from engine.vocabulary import Schedule

NAME_DIGITS = 6


def generations(
    bench: Workbench, controls: Controls, request: GeneratorRequest, kernel: Kernel, schedule: Schedule
) -> Iterator[tuple[str, ...]]:
    """The sha256s of each generation's files, ready to be assembled with; what they came to is read when the next one
    is asked for. The database keeps the bytes of those that are as fast as what may be deployed.

    An engine that fails ends it with a warning. Raises Stopped.
    """
    if not isinstance(bench.device, TakesControls) or not bench.device.offer(Controls(controls.assembler, ())):
        bench.log(f"{bench.device.name} takes no controls files while it runs: none are generated", "warning")
        return
    try:
        with request.open(controls.assembler.version) as generator:
            number = 0
            while (pool := generator.ask()) is not None:
                number += 1
                files = [ControlsFile(f"{kernel.label or kernel.family}-{number}", data) for data in pool]
                fitting = _accepted(bench, controls, files)
                if fitting:
                    bench.device.offer(Controls(controls.assembler, tuple(fitting)))
                    yield tuple(dict.fromkeys(file.sha256 for file in fitting))
                costs = [_cost(bench, kernel, schedule, file) for file in files]
                generator.tell(costs)
                _keep(bench, controls, kernel, schedule, files)
                _tell(bench, kernel, schedule, number, costs)
    except GeneratorError as error:
        bench.log(f"{error}; what was generated so far is kept", "warning")


def _accepted(bench: Workbench, controls: Controls, files: Sequence[ControlsFile]) -> list[ControlsFile]:
    judgement = judge(Controls(controls.assembler, tuple(files)), bench.device.target.capability)
    return [file for file, said in zip(files, judgement.each, strict=True) if said.accepted]


def _cost(bench: Workbench, kernel: Kernel, schedule: Schedule, file: ControlsFile | None) -> float | None:
    """What the search made of a file on the schedule, by its objective; of no file for None."""
    sha256 = file.sha256 if file is not None else ""
    known = bench.recorder.ranking(kernel, Schedule.of({**schedule.as_dict(), "ACF": sha256}))
    return bench.settings.objective.cost(known) if known is not None else None


def _keep(
    bench: Workbench, controls: Controls, kernel: Kernel, schedule: Schedule, files: Sequence[ControlsFile]
) -> None:
    plain = _cost(bench, kernel, schedule, None)
    bound = None if plain is None else plain * (1 + bench.settings.deploy_band)
    kept = [
        file
        for file in files
        if (cost := _cost(bench, kernel, schedule, file)) is not None and (bound is None or cost <= bound)
    ]
    assembler, capability = controls.assembler, bench.device.target.capability
    said = [AcceptanceRow(file.sha256, assembler.sha256, assembler.version, capability, True) for file in kept]
    named = [(f"{file.name}-{file.sha256[:NAME_DIGITS]}", file.data) for file in kept]
    bench.recorder.controls(named, said)


def _tell(bench: Workbench, kernel: Kernel, schedule: Schedule, number: int, costs: Sequence[float | None]) -> None:
    plain, found = _cost(bench, kernel, schedule, None), [cost for cost in costs if cost is not None]
    best = f"the best takes {min(found) / plain:.3f}x what none takes" if found and plain else "none could be timed"
    name = kernel.label or kernel.key
    bench.log(f"{name}: generation {number} of controls files: {len(found)} of {len(costs)} ran, {best}")
