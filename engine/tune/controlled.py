"""ptxas controls in a run: one more knob at the end of each kernel's tree, once this run has shown that they work.

The empty answer, no controls, is always offered and always first. Whether controls reach the code is proved in the run
itself: the files change a probe's machine code, and a kernel assembled without optimization, by the way that controls
take, is slower than itself. Without that proof the layer is off and the run goes on without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from engine.codegen import is_generated, offered_schedules
from engine.events import ControlsChecked
from engine.ir import GraphBuilder, TensorSpec
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure import (
    NO_OPTIMIZATION,
    Controls,
    ControlsFile,
    Difference,
    GeneratorRequest,
    Judgement,
    differences,
    find_assembler,
    judge,
    option_sha256,
    read_controls,
)
from engine.prior import Prior, Surrogate
from engine.search import Path as TreePath
from engine.search import Search, Space
from engine.store import AcceptanceRow, Store
from engine.tune.experience import Experience
from engine.tune.generated import generations
from engine.tune.problem import Problem
from engine.tune.scoring import no_opinion
from engine.tune.set_aside import SetAside, Setbacks
from engine.tune.workbench import Workbench
from engine.vocabulary import Fork, KnobValue, Option, Schedule, Verdict

KNOB = "ACF"
NONE = Option(((KNOB, ""),))
CANARY_SIZE = 512
VISIBLY_SLOWER = 1.05
"""Without optimization a small matmul's code is several times as long; a smaller slowdown is none."""


class ControlsMode(StrEnum):
    """When controls are searched: with the schedules, on each kernel's best one, or one file for all of its shapes."""

    JOINT = "joint"
    AFTER = "after"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class ControlsRequest:
    """What a person asked for: ACF files and folders of them, a ptxas (None: one is looked for), schedules first.

    With `shared` one file is looked for that helps all shapes of a kernel; with `generate` files are bred for each
    kernel's best schedule.
    """

    files: tuple[Path, ...]
    ptxas: Path | None = None
    after: bool = False
    shared: bool = False
    generate: GeneratorRequest | None = None

    @property
    def mode(self) -> ControlsMode:
        if self.shared:
            return ControlsMode.SHARED
        return ControlsMode.AFTER if self.after or self.generate is not None else ControlsMode.JOINT

    def load(self) -> Controls:
        """Find the ptxas and read the files; where none are given, those of a first generation.

        Raises ControlsError, one sentence with a way out.
        """
        if self.files or self.generate is None:
            files = read_controls(self.files)  # first: a path that isn't there is the nearer mistake
            return Controls(find_assembler(self.ptxas), files)
        assembler = find_assembler(self.ptxas)
        bred = [ControlsFile("sample", data) for data in self.generate.sample(assembler.version)]
        return Controls(assembler, tuple({file.sha256: file for file in bred}.values()))


class ControlledSpace:
    """A kernel's space with one more fork at the end: no controls, or one of `offered` (sha256s)."""

    def __init__(self, space: Space, offered: Sequence[str]) -> None:
        self._space = space
        self._fork = Fork(KNOB, (NONE, *(Option(((KNOB, sha256),)) for sha256 in sorted(offered))))

    def fork(self, path: TreePath) -> Fork | None:
        """See `Space`."""
        if path and path[-1] in self._fork.options:
            return None
        before = self._space.fork(path)
        return before if before is not None else self._fork


class ControlledProblem:
    """A problem whose generated kernels are tuned with controls, those that a ptxas accepted."""

    def __init__(
        self,
        problem: Problem,
        controls: Controls,
        judgement: Judgement,
        mode: ControlsMode = ControlsMode.JOINT,
        generate: GeneratorRequest | None = None,
    ) -> None:
        self.plain = problem
        self.controls = controls
        self.judgement = judgement
        self.mode = mode
        self.generate = generate
        self.set_aside = SetAside({file.sha256: file.name for file in controls.files})
        self._experiences: dict[str, Experience] = {}
        self._setbacks: dict[str, Setbacks] = {}

    @property
    def target(self) -> str:
        return self.plain.target

    @property
    def graph(self) -> Graph | None:
        return self.plain.graph

    def outer_space(self) -> Space:
        return self.plain.outer_space()

    def grouping(self, path: TreePath) -> Grouping:
        return self.plain.grouping(path)

    def kernel_counts(self, path: TreePath) -> Mapping[str, tuple[Kernel, int]]:
        return self.plain.kernel_counts(path)

    def schedule_space(self, kernel: Kernel) -> Space:
        space = self.plain.schedule_space(kernel)
        return ControlledSpace(space, self._at_once()) if _is_assembled(kernel) else space

    def experience(self, kernel: Kernel) -> Experience:
        """What the kernel's search knows of controls, the same object at every call."""
        return self._experiences.setdefault(kernel.key, Experience(self._at_once()))

    def setbacks(self, kernel: Kernel) -> Setbacks:
        """What the kernel's search knows of files that break its candidates, the same object at every call."""
        return self._setbacks.setdefault(kernel.key, Setbacks(kernel, self.set_aside))

    def declined_because(self, kernel: Kernel) -> str | None:
        return self.plain.declined_because(kernel)

    def candidates(self, kernel: Kernel) -> Sequence[Mapping[str, KnobValue]]:
        plain = self.plain.candidates(kernel)
        if not _is_assembled(kernel):
            return plain
        return [{**knobs, KNOB: acf} for knobs in plain for acf in ("", *self._at_once())]

    def take_surrogate(self, kernel: Kernel, prior: Prior, seed: int) -> Surrogate | None:
        """What the plain problem kept knows nothing of controls."""
        return None

    def space_after(self, kernel: Kernel, schedule: Schedule) -> Space | None:
        """The controls of one schedule, where they are searched after the schedules; else None."""
        if self.mode is not ControlsMode.AFTER or not _is_assembled(kernel):
            return None
        return controls_of(schedule, self.judgement.offered)

    def _at_once(self) -> tuple[str, ...]:
        return self.judgement.offered if self.mode is ControlsMode.JOINT else ()


class _OneSchedule:
    """The space of a schedule's knobs without its controls: one answer."""

    def __init__(self, schedule: Schedule) -> None:
        self._only = Option(tuple(knob for knob in schedule.knobs if knob[0] != KNOB))

    def fork(self, path: TreePath) -> Fork | None:
        return None if path else Fork("schedule", (self._only,))


def controls_of(schedule: Schedule, offered: Sequence[str]) -> Space:
    """The space of one schedule: without controls, and with each of these."""
    return ControlledSpace(_OneSchedule(schedule), offered)


def experience_of(problem: Problem, kernel: Kernel) -> Experience:
    """What the kernel's search learns of controls; of a problem without, nothing that anybody asks."""
    return problem.experience(kernel) if isinstance(problem, ControlledProblem) else Experience(())


def setbacks_of(problem: Problem, kernel: Kernel) -> Setbacks:
    """What the kernel's search may set aside; of a problem without controls, nothing."""
    return problem.setbacks(kernel) if isinstance(problem, ControlledProblem) else Setbacks(kernel, None)


def searches_after(
    bench: Workbench,
    problem: Problem,
    kernel: Kernel,
    fastest: Callable[[], Schedule | None],
    forbidden: Callable[[TreePath], bool] | None,
) -> Iterator[Search]:
    """The searches over the controls of the best schedule, where they come after the schedules: one over the files
    that were given, then one a generation. Each has to be walked before the next is asked for. Raises Stopped.
    """
    if not isinstance(problem, ControlledProblem) or problem.mode is not ControlsMode.AFTER:
        return
    schedule = fastest()
    space = problem.space_after(kernel, schedule) if schedule is not None else None
    if space is None or schedule is None:
        return

    def search(space: Space, patience: int) -> Search:
        return Search(space, no_opinion, patience=patience, exploration=bench.settings.exploration, forbidden=forbidden)

    yield search(space, bench.settings.patience)
    if problem.generate is not None:
        for offered in generations(bench, problem.controls, problem.generate, kernel, schedule):
            # every file of a generation is tried: its times breed the next one
            yield search(controls_of(schedule, offered), len(offered) + 2)


def _is_assembled(kernel: Kernel) -> bool:
    return kernel.foreign is None and is_generated(kernel)


def controlled(
    problem: Problem, controls: Controls | None, capability: int, store: Store, request: ControlsRequest | None
) -> Problem:
    """The problem with the controls that this ptxas takes for this GPU, which the database keeps.

    Raises ControlsError where the ptxas assembles nothing for the GPU.
    """
    if controls is None or request is None:
        return problem
    judgement = judge(controls, capability)
    assembler = controls.assembler
    store.record_controls(
        [(file.name, file.data) for file in controls.files],
        [
            AcceptanceRow(item.sha256, assembler.sha256, assembler.version, capability, item.accepted, item.reason)
            for item in judgement.each
        ],
    )
    return ControlledProblem(problem, controls, judgement, request.mode, request.generate)


def proved(bench: Workbench, problem: Problem) -> Problem:
    """The problem as it is if this run shows that controls reach the code, else without them; says which, and why.

    Raises Stopped, DeviceError.
    """
    if not isinstance(problem, ControlledProblem):
        return problem
    judgement = problem.judgement
    event = ControlsChecked(
        at=0.0,
        on=False,
        reason=judgement.off_because,
        ptxas=judgement.assembler.identity,
        given=len(judgement.each),
        offered=len(judgement.offered),
        changing=judgement.changing,
        rejected=tuple(f"{item.name}: {item.reason}" for item in judgement.each if not item.accepted),
        mode=problem.mode,
    )
    if not event.reason:
        event = _timed(bench, event)
    _tell(bench, event)
    problem.set_aside.begin(event)
    return problem if event.on else problem.plain


def _timed(bench: Workbench, event: ControlsChecked) -> ControlsChecked:
    """The canary: a kernel beside itself, and beside itself without optimization, in turns."""
    kernel, schedule = canary(bench)
    slow = Schedule.of({**schedule.as_dict(), KNOB: option_sha256(NO_OPTIMIZATION)})
    bench.checkpoint()
    times = bench.device.compare(kernel, [schedule, schedule, slow])
    if not times.windows:
        cause = f": {times.failure.kind}: {times.failure.cause}" if times.failure else ""
        return replace(event, reason=f"the canary could not be timed{cause}")
    itself, slower = differences([times.windows], bench.noise_share())
    reason = _red(itself, slower)
    return replace(event, on=not reason, reason=reason, slowdown=slower.ratio, control_ratio=itself.ratio)


def _red(itself: Difference, slower: Difference) -> str:
    if itself.verdict is not Verdict.WITHIN_NOISE:
        return f"a kernel timed against itself differs ({itself.ratio:.3f}x): times of this run prove nothing"
    if slower.verdict is not Verdict.SLOWER or slower.ratio < VISIBLY_SLOWER:
        return (
            f"a kernel assembled without optimization takes {slower.ratio:.3f}x its time: "
            "what ptxas is told does not reach the code"
        )
    return ""


def canary(bench: Workbench) -> tuple[Kernel, Schedule]:
    """A small matmul that computes more than it loads, with its first legal schedule."""
    builder = GraphBuilder()
    side = TensorSpec.contiguous((CANARY_SIZE, CANARY_SIZE), "bfloat16")
    product = builder.add("matmul", builder.input(side), builder.input(side))
    kernel = Kernel("contraction", builder.build(product), "canary")
    first = next(offered_schedules(kernel, bench.device.target))
    return kernel, Schedule.of({**first.as_dict(), KNOB: ""})


def _tell(bench: Workbench, event: ControlsChecked) -> None:
    bench.tell_event(replace(event, at=time.time()))
    for text in event.rejected:
        bench.log(f"controls file {text}", "warning")
    if event.on:
        bench.log(
            f"ptxas controls: {event.offered} of {event.given} files fit ptxas {event.ptxas}, {event.changing} change "
            f"a probe's code; without optimization the canary takes {event.slowdown:.2f}x its time, "
            f"against itself {event.control_ratio:.3f}x"
        )
    else:
        bench.log(f"ptxas controls are off: {event.reason}", "warning")
