"""Several devices find what one finds, in fewer steps, and a device that dies loses nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from engine.events import Event, Logged
from engine.measure import DeviceError
from engine.store import Store
from engine.tune.devices import Fleet
from engine.vocabulary import Context, Regime, Schedule

from .fake_device import FakeDevice
from .fleet_rig import SETTINGS, Clock, MortalDevice, SteppedDevice, bests, kept, many_kernels_program, tune_on
from .rig import tune_with


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event], tuple[object, ...]]:
    """The run on one device: its database, its events and its numbers."""
    database = tmp_path_factory.mktemp("alone") / "t.db"
    events: list[Event] = []
    summary = tune_on(database, FakeDevice(), events=events)
    return database, events, _numbers(summary)


def _numbers(summary: object) -> tuple[object, ...]:
    names = ("measured", "cached", "failed", "best_us", "sum_us", "assembled_us")
    return tuple(getattr(summary, name) for name in names)


@pytest.mark.parametrize(("count", "kernels"), [(2, 1), (2, 2), (4, 1)])
def test_the_number_of_devices_changes_no_result(
    alone: tuple[Path, list[Event], tuple[object, ...]], tmp_path: Path, count: int, kernels: int
) -> None:
    database, events, numbers = alone
    devices = [MortalDevice(number) for number in range(count)]
    several: list[Event] = []
    summary = tune_on(tmp_path / "t.db", *devices, events=several, kernels=kernels)
    assert len(bests(events)) >= 6
    assert bests(several) == bests(events)
    assert _numbers(summary) == numbers
    assert kept(tmp_path / "t.db") == kept(database)


def test_a_kernel_is_tuned_on_one_device(tmp_path: Path) -> None:
    devices = [MortalDevice(number) for number in range(3)]
    tune_on(tmp_path / "t.db", *devices)
    kernels = [{kernel for kernel, _, _ in device.launches} for device in devices]
    assert sum(map(len, kernels)) == len(set.union(*kernels))


@pytest.mark.parametrize("kernels", [1, 2])
@pytest.mark.parametrize("dies_at", [1, 7, 20])
def test_a_device_that_dies_hands_its_kernels_on(
    alone: tuple[Path, list[Event], tuple[object, ...]], tmp_path: Path, dies_at: int, kernels: int
) -> None:
    database, events, numbers = alone
    devices = [MortalDevice(0), MortalDevice(1, dies_at)]
    several: list[Event] = []
    summary = tune_on(tmp_path / "t.db", *devices, events=several, kernels=kernels)
    assert len(devices[1].launches) == dies_at - 1
    assert bests(several) == bests(events)
    assert _numbers(summary) == numbers
    assert kept(tmp_path / "t.db") == kept(database)
    (warning,) = [e.text for e in several if isinstance(e, Logged) and e.level == "warning"]
    assert warning == "fake:1 is lost (the GPU fell off the bus); what it was tuning goes on at fake:0"
    launches = [launch for device in devices for launch in device.launches]
    assert len(launches) == len(set(launches))


def test_the_loss_of_the_first_device_leaves_the_assembled_check_to_another(tmp_path: Path) -> None:
    devices = [MortalDevice(0, 5), MortalDevice(1)]
    summary = tune_on(tmp_path / "t.db", *devices)
    assert summary.assembled_us is not None


def test_without_a_device_the_run_ends_in_a_sentence_and_is_gone_on_with(
    alone: tuple[Path, list[Event], tuple[object, ...]], tmp_path: Path
) -> None:
    database, _, numbers = alone
    dying = [MortalDevice(0, 30), MortalDevice(1, 20)]
    with pytest.raises(DeviceError, match=r"no device is left \(fake:"):
        tune_on(tmp_path / "t.db", *dying)
    done = {launch for device in dying for launch in device.launches}
    again = [MortalDevice(0), MortalDevice(1)]
    summary = tune_on(tmp_path / "t.db", *again)
    assert summary.sum_us == numbers[4]
    assert not done & {launch for device in again for launch in device.launches}
    tables = kept(tmp_path / "t.db")
    assert tables["measurement"] == kept(database)["measurement"]


@pytest.mark.parametrize("count", [2, 4])
def test_several_devices_need_fewer_steps(tmp_path: Path, count: int) -> None:
    clock = Clock()
    devices = [SteppedDevice(number, clock) for number in range(count)]
    fleet = clock.fleet = Fleet(devices)
    try:
        tune_with(tmp_path / "t.db", fleet, many_kernels_program(), SETTINGS)
    finally:
        clock.close()
    assert all(device.launches for device in devices)
    candidates = sum(len(device.launches) for device in devices)
    assert candidates / clock.steps > {2: 1.7, 4: 2.5}[count]


def test_unlike_devices_are_refused_by_name() -> None:
    class Other(FakeDevice):
        name = "fake:1"

        @property
        def context(self) -> Context:
            return Context("Another GPU", "8.0", "1", "2", "3", "4")

    with pytest.raises(DeviceError, match=r"fake:0 \(Fake GPU\) and fake:1 \(Another GPU\) differ"):
        Fleet([FakeDevice(), Other()])


def test_closing_a_fleet_answers_who_waits_for_a_device() -> None:
    fleet = Fleet([MortalDevice(0)])
    answers: list[BaseException] = []

    def wait_for_a_device() -> None:
        try:
            with fleet.lease():
                pass
        except DeviceError as error:
            answers.append(error)

    with fleet.lease():
        thread = threading.Thread(target=wait_for_a_device)
        thread.start()
        fleet.close()
        thread.join(10)
    assert len(answers) == 1


def test_a_single_candidate_runs_on_a_device_that_lives(tmp_path: Path) -> None:
    tune_on(tmp_path / "t.db", FakeDevice())
    with Store.open(tmp_path / "t.db") as store:
        kernel = store.kernels()[0]
    fleet = Fleet([MortalDevice(0, 1), MortalDevice(1)])
    measurement = fleet.submit(kernel, Schedule.of({"BLOCK": 16}), Regime.RANKING).result(10)
    assert measurement.us is not None
    assert fleet.lost == {"fake:0": "the GPU fell off the bus"}
