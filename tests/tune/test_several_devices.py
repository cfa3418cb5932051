"""A run that names several devices: they are opened together, refused together, and named in what the run says."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.events import Logged
from engine.ir.plan import Program
from engine.measure import Device, DeviceError
from engine.session import TuningSession
from engine.store import Store
from engine.tune import LiveRequest, Settings, live, tune_live

from .fake_device import FakeDevice
from .fleet_rig import MortalDevice, many_kernels_program


class Machine:
    """Opens fake GPUs by name; `dies_at` says of which launch each of them dies, `absent` which is not there."""

    def __init__(self, dies_at: dict[str, int] | None = None, absent: str = "") -> None:
        self.opened: dict[str, FakeDevice] = {}
        self.jobs: list[int | None] = []
        self.beside: list[str] = []
        self._dies_at = dies_at or {}
        self._absent = absent

    def open(self, name: str, jobs: int | None, beside: Device | None = None) -> FakeDevice:
        if name == self._absent:
            raise DeviceError(f"{name} can't be used: no such GPU")
        device = self.opened[name] = MortalDevice(int(name[-1]), self._dies_at.get(name))
        self.jobs.append(jobs)
        self.beside.append(beside.name if beside is not None else "")
        return device


@pytest.fixture(autouse=True)
def captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "capture", lambda text, **more: Program(many_kernels_program().graph, text))


def _session(database: Path, devices: str, machine: Machine, jobs: int | None = None) -> TuningSession:
    request = LiveRequest("chain()", database, devices, "emmy tune", machine.open)
    return TuningSession(lambda host: tune_live(request, host), Settings(patience=5, outer_patience=2, jobs=jobs))


def _run(session: TuningSession) -> TuningSession:
    with session:
        session.start()
        assert session.wait(60)
    return session


def test_the_compile_processes_are_shared_and_every_device_is_closed(tmp_path: Path) -> None:
    machine = Machine()
    session = _run(_session(tmp_path / "t.db", "cuda:0,cuda:2", machine, jobs=6))
    assert session.failure is None
    assert machine.jobs == [6, 6]
    assert machine.beside == ["", "fake:0"]
    assert list(machine.opened) == ["cuda:0", "cuda:2"]
    assert all(device.closed for device in machine.opened.values())
    with Store.open(tmp_path / "t.db") as store:
        assert [run.device for run in store.runs()] == ["cuda:0,cuda:2"]


def test_several_devices_sum_up_to_what_one_does(tmp_path: Path) -> None:
    sessions = [
        _run(_session(tmp_path / f"{devices}.db", devices, Machine())) for devices in ("cuda:0", "cuda:0,cuda:1")
    ]
    one, two = (session.summary for session in sessions)
    assert one is not None
    assert two is not None
    assert (one.sum_us, one.assembled_us, one.measured) == (two.sum_us, two.assembled_us, two.measured)


def test_a_lost_device_is_named_in_the_run_and_in_its_record(tmp_path: Path) -> None:
    session = _run(_session(tmp_path / "t.db", "cuda:0,cuda:1", Machine({"cuda:1": 2})))
    assert session.failure is None
    expected = "fake:1 is lost (the GPU fell off the bus); what it was tuning goes on at fake:0"
    assert expected in [event.text for event in session.drain(10**6) if isinstance(event, Logged)]
    with Store.open(tmp_path / "t.db") as store:
        recorded = [event.text for event in store.events_of(store.runs()[0].id) if isinstance(event, Logged)]
    assert expected in recorded


@pytest.mark.parametrize(
    ("devices", "words"),
    [("cuda:0,cuda:1", "cuda:1 can't be used: no such GPU"), ("cuda:0,cuda:0", "cuda:0 is named twice")],
)
def test_what_can_not_be_opened_is_one_sentence_and_closes_the_rest(tmp_path: Path, devices: str, words: str) -> None:
    machine = Machine(absent="cuda:1")
    session = _run(_session(tmp_path / "t.db", devices, machine))
    assert session.failure is not None
    assert session.failure.startswith(words)
    assert all(device.closed for device in machine.opened.values())
    assert list(tmp_path.iterdir()) == []


def test_closing_a_session_closes_every_device(tmp_path: Path) -> None:
    machine = Machine()
    session = _session(tmp_path / "t.db", "cuda:0,cuda:1", machine)
    session.control.pause()
    session.start()
    assert not session.wait(0.5)
    session.close()
    assert session.wait(0)
    assert all(device.closed for device in machine.opened.values())
