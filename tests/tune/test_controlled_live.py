"""A live run that asks for ptxas controls: what it opens the device with, what it keeps, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.codegen import acf_of
from engine.events import ControlsChecked
from engine.measure import Controls, ControlsError
from engine.store import Store
from engine.tune import ControlsRequest, LiveRequest, Settings, tune_live
from engine.vocabulary import Context, Schedule
from tests.measure.fake_ptxas import fake_ptxas

from .fake_device import FakeDevice
from .test_controlled import Bench, Turns
from .test_live import CODE, Host


def request(
    tmp_path: Path, device: FakeDevice, ptxas: Path, *texts: str, **changes: Any
) -> tuple[LiveRequest, list[Controls]]:
    folder = tmp_path / "a pack"
    folder.mkdir(exist_ok=True)
    for text in texts:
        (folder / f"{text}.acf").write_text(text)
    opened: list[Controls] = []

    def open_device(name: str, jobs: int | None, controls: Controls) -> FakeDevice:
        opened.append(controls)
        return device

    wanted = ControlsRequest((folder,), ptxas, **changes)
    return LiveRequest(CODE, tmp_path / "t.db", "fake:0", "emmy tune", open_device, wanted), opened


def checked(host: Host) -> ControlsChecked:
    return next(event for event in host.events if isinstance(event, ControlsChecked))


def test_accepted_files_are_searched_and_kept(tmp_path: Path) -> None:
    device, host = Bench(Turns()), Host(Settings(patience=40))
    ptxas = fake_ptxas(tmp_path / "tools")
    asked, opened = request(tmp_path, device, ptxas, "slower", "ignored", "reject")
    tune_live(asked, host)
    assert opened[0].assembler.path == str(ptxas)
    assert len(opened[0].files) == 3
    event = checked(host)
    assert (event.on, event.given, event.offered, event.changing) == (True, 3, 2, 1)
    assert event.ptxas == opened[0].assembler.identity
    assert len(event.rejected) == 1
    tried = {acf_of(schedule) for schedule in _schedules(device)}
    accepted = {file.sha256 for file in opened[0].files if file.name != "reject"}
    assert tried == {"", *accepted}
    context = Context("GPU", "9.0", "", "", "", opened[0].assembler.identity)
    with Store.open(tmp_path / "t.db") as store:
        assert {file.name for file in store.controls()} == {"slower", "ignored", "reject"}
        for file in store.controls():
            assert (store.controls_unusable_because(file.sha256, context) is None) == (file.name != "reject")


def test_a_ptxas_that_ignores_them_turns_the_layer_off(tmp_path: Path) -> None:
    device, host = Bench(Turns()), Host(Settings(patience=10))
    asked, _ = request(tmp_path, device, fake_ptxas(tmp_path / "tools", obeys=False), "slower")
    tune_live(asked, host)
    assert not checked(host).on
    assert "the same code with and without it" in checked(host).reason
    assert not any(acf_of(schedule) for _, compared, _ in device.comparisons for schedule in compared), "no canary"
    assert device.launches
    assert all("ACF" not in schedule.as_dict() for schedule in _schedules(device))


def test_without_a_ptxas_nothing_is_opened_or_written(tmp_path: Path) -> None:
    asked, opened = request(tmp_path, Bench(Turns()), fake_ptxas(tmp_path / "tools", takes=False), "slower")
    with pytest.raises(ControlsError, match="has no --apply-controls"):
        tune_live(asked, Host(Settings(patience=10)))
    assert opened == []
    assert not (tmp_path / "t.db").exists()


def _schedules(device: FakeDevice) -> list[Schedule]:
    return [Schedule.from_key(key) for _, key, _ in device.launches]
