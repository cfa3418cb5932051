"""Controls files that are bred for a kernel's best schedule: measured like any, and kept where they are fast."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.codegen import acf_of
from engine.events import Compared, Event, Logged
from engine.ir.kernel import Kernel
from engine.measure import Assembler, Controls, ControlsError, ControlsFile, GeneratorRequest, judge, read_assembler
from engine.store import Store
from engine.tune.controlled import ControlledProblem, ControlsMode, ControlsRequest
from engine.tune.devices import Fleet
from engine.tune.problem import Problem
from engine.tune.settings import Settings
from engine.vocabulary import Schedule
from tests.measure.fake_compileiq import fake_compileiq
from tests.measure.fake_ptxas import fake_ptxas

from .rig import matmul_program, tune_with
from .test_controlled import BASE_US, FAST, Bench, Turns, times, used

GENERATIONS = 2
WORDS = '"other", "slower", "reject"'
BRED = {
    f"{word} {number}": ControlsFile("", f"{word} {number}".encode())
    for word in ("other", "slower")
    for number in range(2)
}
SPEED = {"other 0": 0.99, "other 1": 0.9, "slower 0": 1.3, "slower 1": 1.4}
GAIN = {BRED[text].sha256: gain for text, gain in SPEED.items()}


class Given(Bench):
    """A GPU that takes files while it runs, and on which what was bred is as fast as SPEED says."""

    def __init__(self) -> None:
        super().__init__(Turns(gain={**BASE_US, **GAIN}))
        self._us = _takes
        self.offered: list[ControlsFile] = []

    def offer(self, controls: Controls) -> bool:
        self.offered += controls.files
        return True


def _takes(kernel: Kernel, schedule: Schedule) -> float:
    return times(kernel, schedule) * GAIN.get(acf_of(schedule), 1.0)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return fake_compileiq(folder, words=WORDS)


@pytest.fixture
def assembler(tmp_path: Path) -> Assembler:
    return read_assembler(fake_ptxas(tmp_path / "tools"))


def bred(database: Path, device: Bench, assembler: Assembler, monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    events: list[Event] = []

    def wrap(problem: Problem, store: Store) -> Problem:
        controls = Controls(assembler, (ControlsFile("other", b"other"),))
        request = GeneratorRequest(GENERATIONS, pool=6)
        return ControlledProblem(problem, controls, judge(controls, 90), ControlsMode.AFTER, request)

    tune_with(database, device, matmul_program(), Settings(patience=25), events=events, wrap=wrap)
    return events


def said(events: Sequence[Event]) -> str:
    return "\n".join(event.text for event in events if isinstance(event, Logged))


def test_the_engine_is_told_what_was_measured_and_the_fast_are_kept(
    tmp_path: Path, engine: Path, assembler: Assembler, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Given()
    events = bred(tmp_path / "t.db", device, assembler, monkeypatch)
    told = [dict(ast.literal_eval(line)) for line in engine.read_text().splitlines()]
    assert len(told) == GENERATIONS
    for number, scores in enumerate(told):
        assert scores[f"reject {number}"] == "invalid"
        assert scores[f"slower {number}"] / scores[f"other {number}"] == pytest.approx(
            SPEED[f"slower {number}"] / SPEED[f"other {number}"]
        )
    assert {file.data.decode() for file in device.offered} == set(SPEED), "what ptxas rejects never gets to a compile"
    compared = next(event for event in reversed(events) if isinstance(event, Compared))
    winner = BRED["other 1"].sha256
    assert acf_of(Schedule.from_key(compared.chosen)) == winner
    assert compared.tried == 1 + len(SPEED), "every file of every generation counts against a win"
    assert winner in used(events)
    with Store.open(tmp_path / "t.db") as store:
        kept = {file.data.decode(): file.name for file in store.controls()}
        assert store.controls_file(winner) is not None
    assert set(kept) == {"other 0", "other 1"}
    assert "generation 2 of controls files: 2 of 3 ran, the best takes 0.900x what none takes" in said(events).replace(
        "4 of 6", "2 of 3"
    )


def test_without_an_engine_the_rest_of_the_search_stands(
    tmp_path: Path, assembler: Assembler, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = bred(tmp_path / "t.db", Given(), assembler, monkeypatch)
    assert "no CompileIQ is installed to generate controls" in said(events)
    assert used(events)


def test_a_device_that_takes_no_files_generates_none(
    tmp_path: Path, engine: Path, assembler: Assembler, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = bred(tmp_path / "t.db", Bench(Turns(gain={FAST.sha256: 1.0})), assembler, monkeypatch)
    assert "takes no controls files while it runs" in said(events)
    assert not engine.exists()


def test_a_request_without_files_samples_some(tmp_path: Path, engine: Path, assembler: Assembler) -> None:
    request = ControlsRequest((), Path(assembler.path), generate=GeneratorRequest(3))
    assert request.mode is ControlsMode.AFTER
    controls = request.load()
    assert {file.data for file in controls.files} == {b"other 0", b"slower 0", b"reject 0"}
    assert {ControlsRequest((), shared=True).mode, ControlsRequest(()).mode} == {
        ControlsMode.SHARED,
        ControlsMode.JOINT,
    }


def test_a_request_without_an_engine_is_refused_in_words(assembler: Assembler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(ControlsError, match="no CompileIQ is installed"):
        ControlsRequest((), Path(assembler.path), generate=GeneratorRequest(3)).load()


def test_a_lease_of_several_gpus_hands_files_on(assembler: Assembler) -> None:
    takes, refuses = Given(), Bench(Turns())
    files = Controls(assembler, (ControlsFile("other", b"other"),))
    for device, taken in ((takes, True), (refuses, False)):
        with Fleet([device]) as fleet, fleet.lease() as lease:
            assert lease.offer(files) is taken
    assert takes.offered == list(files.files)
