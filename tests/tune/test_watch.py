"""What a run tells of its GPUs: each look once, each warning once, and nothing that ends a run."""

from __future__ import annotations

from pathlib import Path

from engine.events import CompilersSeen, Event, GpuSampled, Logged, Respawned, WorkersSeen
from engine.measure import Candidate, Compiling, DeviceHealth, GpuState, Respawn, WorkerState
from engine.measure.gpu_state import Throttle
from engine.snapshot import Snapshot, apply
from engine.store import Store
from engine.tune.watch import Watch

from .fake_device import FakeDevice
from .rig import matmul_program, tune_with

HOT = GpuState(at=5.0, sm_mhz=1200, temperature_c=90, power_w=600.0, throttle=(Throttle.HEAT,), others=("7 python",))


def test_a_look_and_a_warning_are_told_once() -> None:
    watch = Watch()
    health = DeviceHealth(states=(("cuda:0", HOT),))
    states = watch.fresh_states(health)
    assert states == [("cuda:0", HOT)]
    warnings = watch.warnings(states)
    assert [warning.partition(":")[0] for warning in warnings] == ["cuda", "cuda"]
    assert "7 python" in warnings[1]
    assert watch.fresh_states(health) == []
    assert watch.warnings(states) == []


def test_two_devices_warn_each_for_itself() -> None:
    watch = Watch()
    states = watch.fresh_states(DeviceHealth(states=(("cuda:0", HOT), ("cuda:1", HOT))))
    assert len(watch.warnings(states)) == 4


def test_what_a_device_does_without_is_told_once() -> None:
    watch = Watch()
    health = DeviceHealth(missing=("no NVML here", "no NVML here"))
    assert watch.missing(health) == ["no NVML here"]
    assert watch.missing(health) == []


def test_a_run_keeps_looks_and_warnings_and_goes_on(tmp_path: Path) -> None:
    device = FakeDevice()
    device.seen = DeviceHealth(states=(("fake:0", HOT),))
    events: list[Event] = []
    finished = tune_with(tmp_path / "t.db", device, matmul_program(), events=events)
    assert finished.sum_us is not None
    looks = [event for event in events if isinstance(event, GpuSampled)]
    assert [(look.device, look.sm_mhz, look.throttle, look.others) for look in looks] == [
        ("fake:0", 1200, ("heat",), ("7 python",))
    ]
    assert sum(isinstance(event, Logged) and event.level == "warning" for event in events) == 2
    snapshot = Snapshot()
    with Store.open(tmp_path / "t.db") as store:
        for event in store.events_of(store.runs()[0].id):
            apply(snapshot, event)
    assert snapshot.gpus["fake:0"].temperature_c == 90


def test_a_run_says_once_what_its_device_does_without_and_keeps_it(tmp_path: Path) -> None:
    device = FakeDevice()
    device.seen = DeviceHealth(missing=("no NVML here", "each new benchmark process takes seconds"))
    events: list[Event] = []
    tune_with(tmp_path / "t.db", device, matmul_program(), events=events)
    said = [event.text for event in events if isinstance(event, Logged)]
    assert [said.count(reason) for reason in device.seen.missing] == [1, 1]
    snapshot = Snapshot()
    with Store.open(tmp_path / "t.db") as store:
        for event in store.events_of(store.runs()[0].id):
            apply(snapshot, event)
    assert snapshot.health is not None
    assert snapshot.health.missing == device.seen.missing


def test_compiles_are_told_until_there_are_none_and_losses_once() -> None:
    watch = Watch()
    whose = Candidate("k1", "BLOCK=1")
    lost = Respawn(1.0, "cuda:0", "benchmark", whose, "it hung")
    busy = DeviceHealth(
        compiles=(Compiling(7, whose, 1.25),),
        workers=(WorkerState("cuda:0", 9, "timing", whose, 0.5),),
        respawned=(lost,),
    )
    first = dict(watch.processes(busy))
    assert first[CompilersSeen] == {
        "numbers": (7,),
        "kernels": ("k1",),
        "schedules": ("BLOCK=1",),
        "ages_s": (1.25,),
    }
    assert first[WorkersSeen]["steps"] == ("timing",)
    assert first[Respawned]["cause"] == "it hung"
    assert [kind for kind, _ in watch.processes(busy)] == [CompilersSeen, WorkersSeen]
    assert watch.processes(DeviceHealth()) == [(CompilersSeen, dict.fromkeys(first[CompilersSeen], ()))]
    assert watch.processes(DeviceHealth()) == []


def test_a_run_tells_and_keeps_its_processes(tmp_path: Path) -> None:
    device = FakeDevice()
    whose = Candidate("k1", "BLOCK=1")
    device.seen = DeviceHealth(
        compiles=(Compiling(7, whose, 1.25),),
        workers=(WorkerState("fake:0", 9, "timing", whose, 0.5),),
        respawned=(Respawn(1.0, "fake:0", "benchmark", whose, "it hung"),),
    )
    events: list[Event] = []
    tune_with(tmp_path / "t.db", device, matmul_program(), events=events)
    with Store.open(tmp_path / "t.db", read_only=True) as store:
        kept = list(store.events_of(store.runs()[0].id))
    for told in (events, kept):
        snapshot = Snapshot()
        for event in told:
            apply(snapshot, event)
        assert snapshot.compilers is not None
        assert snapshot.compilers.numbers == (7,)
        assert snapshot.workers is not None
        assert snapshot.workers.devices == ("fake:0",)
        assert [one.cause for one in snapshot.respawned] == ["it hung"]
