"""One controls file for several shapes: best in the mean, confirmed on each, used for all of them or for none."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from engine.codegen import acf_of
from engine.deploy.deployment import kernel_choice
from engine.events import Compared, ControlsChecked, Event, Logged
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.plan import Program
from engine.measure import ControlsFile, PairedTimes
from engine.prior import ColdModel
from engine.store import Store
from engine.tune.settings import Settings
from engine.vocabulary import Failure, FailureKind, Schedule, Target

from .fake_device import CONTEXT
from .rig import matmul_program, tune_with
from .test_controlled import O0, Bench, Turns, with_controls

EVERYWHERE, UNEVEN, BROKEN = (ControlsFile(name, name.encode()) for name in ("everywhere", "uneven", "broken"))
FILES = (EVERYWHERE, UNEVEN, BROKEN)
WIDE, NARROW = 512, 256
GAINS = {
    EVERYWHERE.sha256: {WIDE: 0.94, NARROW: 0.97},
    UNEVEN.sha256: {WIDE: 0.80, NARROW: 1.30},
    BROKEN.sha256: {WIDE: 0.5, NARROW: 0.5},
}


def side(kernel: Kernel) -> int:
    return kernel.body.outputs and kernel.body.output_specs()[0].shape[0]


def two_shapes() -> Program:
    """Two matmuls that have nothing to do with each other: one kernel in two shapes."""
    build = GraphBuilder()
    products = []
    for size in (WIDE, NARROW):
        spec = TensorSpec.contiguous((size, size), "bfloat16")
        products.append(build.add("matmul", build.input(spec), build.input(spec)))
    return Program(build.build(*products), "two matmuls")


class Shapes(Bench):
    """A GPU on which files help as `gains` says by shape; `broken` computes nonsense on one of the shapes."""

    def __init__(self, gains: Mapping[str, Mapping[int, float]], *, itself: float = 1.0) -> None:
        super().__init__(Turns())
        self._gains = gains
        self._us = self.takes
        self._failing = _failing
        self._draw = random.Random(7)
        self._itself = itself
        canary: Callable[[Kernel, Sequence[Schedule], bool], PairedTimes] = self.paired

        def turns(kernel: Kernel, schedules: Sequence[Schedule], fresh: bool) -> PairedTimes:
            if kernel.label == "canary" or any(acf_of(one) == O0 for one in schedules):
                return canary(kernel, schedules, fresh)
            takes = [self.takes(kernel, one) for one in schedules]
            takes[-1] *= self._itself if len(schedules) == 3 else 1.0
            return PairedTimes(tuple(tuple(us * self._draw.gauss(1.0, 0.002) for _ in range(25)) for us in takes))

        self.paired = turns

    def takes(self, kernel: Kernel, schedule: Schedule) -> float:
        plain = Schedule.of({name: value for name, value in schedule.knobs if name != "ACF"})
        us = side(kernel) / 20 + (sum(plain.key.encode()) % 89) * 0.02
        return us * self._gains.get(acf_of(schedule), {}).get(side(kernel), 1.0)


def _failing(kernel: Kernel, schedule: Schedule) -> Failure | None:
    wrong = acf_of(schedule) == BROKEN.sha256 and side(kernel) == NARROW
    return Failure(FailureKind.WRONG_RESULT, "its error is 0.7") if wrong else None


def shared(database: Path, device: Bench, program: Program, *files: ControlsFile) -> list[Event]:
    events: list[Event] = []
    tune_with(database, device, program, Settings(patience=25), events=events, wrap=with_controls(*files, shared=True))
    return events


def said(events: Sequence[Event]) -> str:
    return "\n".join(event.text for event in events if isinstance(event, Logged))


def deployed(database: Path) -> dict[int, str]:
    with Store.open(database) as store:
        chosen = {
            side(kernel): kernel_choice(kernel, 1, store, CONTEXT.key, Target(), ColdModel()).chosen
            for kernel in store.kernels()
        }
    return {size: acf_of(one.schedule) for size, one in chosen.items() if one is not None}


def test_the_best_for_all_shapes_together_is_confirmed_and_deployed(tmp_path: Path) -> None:
    device = Shapes(GAINS)
    events = shared(tmp_path / "t.db", device, two_shapes(), *FILES)
    text = said(events)
    assert f"{EVERYWHERE.name} over 2 shapes together takes 0.95" in text or EVERYWHERE.sha256[:12] in text
    assert "is used for all" in text
    compared = [event for event in events if isinstance(event, Compared) and event.tried]
    assert len(compared) == 2
    assert {acf_of(Schedule.from_key(event.chosen)) for event in compared} == {EVERYWHERE.sha256}
    assert all(event.control_verdict == "within noise" for event in compared)
    assert deployed(tmp_path / "t.db") == {WIDE: EVERYWHERE.sha256, NARROW: EVERYWHERE.sha256}
    checked = next(event for event in events if isinstance(event, ControlsChecked))
    assert checked.mode == "shared"
    confirmed = {acf_of(one) for _, asked, _ in device.comparisons for one in asked} - {"", O0}
    assert confirmed == {EVERYWHERE.sha256}, "what fails or is worse in the mean is not timed in turns"


@pytest.mark.parametrize(
    ("gains", "itself"),
    [({EVERYWHERE.sha256: {WIDE: 0.80, NARROW: 1.05}}, 1.0), (GAINS, 0.9)],
    ids=["slower on one shape", "noise against itself"],
)
def test_what_is_not_sound_on_every_shape_is_used_on_none(
    tmp_path: Path, gains: Mapping[str, Mapping[int, float]], itself: float
) -> None:
    events = shared(tmp_path / "t.db", Shapes(gains, itself=itself), two_shapes(), EVERYWHERE)
    assert "is used for none" in said(events)
    assert deployed(tmp_path / "t.db") == {WIDE: "", NARROW: ""}


def test_none_that_helps_is_said(tmp_path: Path) -> None:
    events = shared(tmp_path / "t.db", Shapes({}), two_shapes(), EVERYWHERE)
    assert "none of 1 controls files is faster over its 2 shapes together" in said(events)


def test_shapes_of_an_earlier_run_join(tmp_path: Path) -> None:
    database = tmp_path / "t.db"
    alone = shared(database, Shapes(GAINS), matmul_program(WIDE), *FILES)
    assert "no kernel has several shapes" in said(alone)
    events = shared(database, Shapes(GAINS), matmul_program(NARROW), *FILES)
    assert "over 2 shapes together" in said(events)
    assert deployed(database) == {WIDE: EVERYWHERE.sha256, NARROW: EVERYWHERE.sha256}
