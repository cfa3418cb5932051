"""A search tries what was pinned or measured elsewhere before its own candidates, each once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine.codegen import offered_schedules
from engine.events import Event, Measured
from engine.ir import Kernel
from engine.store import Store, Suggestion
from engine.tune.settings import Settings
from engine.vocabulary import Schedule

from .fake_device import FakeDevice
from .rig import matmul_program, tune_with


def first_tried(path: Path, device: FakeDevice, count: int) -> list[str]:
    events: list[Event] = []
    tune_with(path, device, matmul_program(), Settings(patience=3, limit=6), events=events)
    return [event.schedule for event in events if isinstance(event, Measured) and event.trial][:count]


def the_kernel(path: Path) -> Kernel:
    with Store.open(path, read_only=True) as store:
        (kernel,) = store.kernels()
    return kernel


def test_pins_and_suggestions_come_first(tmp_path: Path) -> None:
    device = FakeDevice()
    path = tmp_path / "tune.db"
    own = first_tried(path, device, 3)
    kernel = the_kernel(path)
    offered = [one for one in offered_schedules(kernel, device.target) if str(one) not in own]
    pinned, slow, fast = offered[5], offered[50], offered[90]
    elsewhere = replace(device.context, gpu="another GPU")
    with Store.open(path) as store:
        store.record_pin(kernel.key, pinned, device.context.key, author="ana")
        unknown = Schedule.of({**pinned.as_dict(), "BLOCK_M": 3})
        times = ((slow, 9.0), (fast, 3.0), (unknown, 1.0), (fast, 3.0))
        store.suggest([Suggestion(kernel.key, schedule, elsewhere, "there", us) for schedule, us in times])
    tried = first_tried(path, device, 6)
    assert tried[:3] == [str(pinned), str(fast), str(slow)]
    assert len(tried) > 3
    assert len(set(tried)) == len(tried)


def test_a_suggestion_of_a_knob_less_takes_it_as_off(tmp_path: Path) -> None:
    device = FakeDevice()
    path = tmp_path / "tune.db"
    own = first_tried(path, device, 3)
    kernel = the_kernel(path)
    wanted = next(
        one for one in offered_schedules(kernel, device.target) if str(one) not in own and not one["PERSISTENT"]
    )
    older = Schedule.of({name: value for name, value in wanted.as_dict().items() if name != "PERSISTENT"})
    with Store.open(path) as store:
        store.record_pin(kernel.key, older, device.context.key, author="ana")
    assert first_tried(path, device, 1) == [str(wanted)]
