"""Controls in a deployment: built with the stored bytes and the ptxas that accepted them, or left out in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.codegen import CONTROLS_FOLDER, machine_code
from engine.deploy import (
    Carried,
    Deployment,
    DeploymentError,
    NoEvidenceError,
    Source,
    deployment,
    export_schedules,
    read_schedule_file,
    receive_schedules,
)
from engine.deploy.backend import compile_callable, emmy_backend
from engine.deploy.controls import NO_FILE_APPLIES, ControlsHere
from engine.deploy.deployment import PinnedControlsError
from engine.deploy.execution import assembling, kernel_sources
from engine.deploy.listing import compiled_kernels, listed_kernels
from engine.ir.plan import Program
from engine.prior import ColdModel
from engine.runtime import BuildError, compile_source
from engine.runtime.toolchain import ptxas_path
from engine.store import Store
from engine.vocabulary import Target
from tests.deploy.controlled_samples import (
    CONTROLLED,
    FAST,
    PLAIN,
    SECOND,
    SHA,
    SLOWER,
    Tools,
    tools,
    tuned,
    tuned_with_controls,
)
from tests.deploy.samples import HERE, THERE, matmul
from tests.measure.fake_ptxas import assemblies, fake_ptxas


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    """The ptxas in a folder with blanks, named by nothing but a path."""
    monkeypatch.delenv("TRITON_PTXAS_PATH", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tools(tmp_path / "the tools")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "t.db") as opened:
        yield opened


def chosen(store: Store, controls: ControlsHere | None, **options: bool) -> Deployment:
    program = Program(matmul().body, "torch.matmul(x, w)", "cuda")
    return deployment(program, store, HERE.key, Target(), ColdModel(), controls=controls, **options)


def schedule_of(one: Deployment) -> object:
    return one.schedules[matmul().key]


def test_a_winner_with_controls_is_found_where_its_ptxas_is(store: Store, found: Tools) -> None:
    tuned(store, HERE, [(SECOND, 9.5)], None)
    tuned_with_controls(store, found)
    one = chosen(store, ControlsHere(HERE, found.path), strict=True)
    assert schedule_of(one) == CONTROLLED
    assert one.context_key == found.context.key
    assert one.controls is not None
    assert one.controls.assembler == found.assembler
    assert [(file.sha256, file.data) for file in one.controls.files] == [(SHA, SLOWER)]
    assert one.notes == ()


def test_the_ptxas_is_found_by_itself(store: Store, found: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned_with_controls(store, found)
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(found.path))
    assert schedule_of(chosen(store, ControlsHere(HERE))) == CONTROLLED


def test_the_shorter_time_decides_between_two_ptxas(store: Store, found: Tools) -> None:
    tuned(store, HERE, [(FAST, 7.5)], None)
    tuned_with_controls(store, found)
    one = chosen(store, ControlsHere(HERE, found.path))
    assert (schedule_of(one), one.controls) == (FAST, None)


def test_without_its_ptxas_the_best_without_is_used_and_said(store: Store, found: Tools) -> None:
    tuned_with_controls(store, found)
    one = chosen(store, ControlsHere(HERE))
    assert (schedule_of(one), one.controls) == (PLAIN, None)
    (note,) = one.notes
    assert "the ptxas 12.8.93 that its controls were measured with isn't here" in note
    with pytest.raises(NoEvidenceError):
        chosen(store, ControlsHere(HERE), strict=True)
    tuned(store, HERE, [(SECOND, 9.5)], None)
    own = chosen(store, ControlsHere(HERE), strict=True)
    assert (schedule_of(own), own.context_key) == (SECOND, HERE.key)


def test_another_binary_of_the_version_is_another_ptxas(store: Store, found: Tools, tmp_path: Path) -> None:
    tuned_with_controls(store, found)
    other = fake_ptxas(tmp_path / "others", salt="another build")
    one = chosen(store, ControlsHere(HERE, other))
    assert schedule_of(one) == PLAIN
    assert "is not the ptxas 12.8.93 that its controls were measured with" in one.notes[0]


def test_what_no_comparison_confirmed_decides_nothing(store: Store, found: Tools) -> None:
    tuned_with_controls(store, found, confirmed=False)
    one = chosen(store, ControlsHere(HERE, found.path))
    assert schedule_of(one) == PLAIN
    assert one.controls is not None, "the best without was measured with that ptxas too"
    assert one.controls.files == ()


def test_times_of_another_gpu_are_no_evidence(store: Store, found: Tools) -> None:
    tuned_with_controls(store, replace_context(found))
    assert chosen(store, ControlsHere(HERE, found.path)).predicted


def replace_context(found: Tools) -> Tools:
    return Tools(found.assembler, replace(THERE, ptxas=found.assembler.identity))


def test_a_pin_that_cannot_be_built_is_an_error(store: Store, found: Tools) -> None:
    tuned_with_controls(store, found)
    store.record_pin(matmul().key, CONTROLLED, found.context.key, author="me")
    pinned = chosen(store, ControlsHere(HERE, found.path))
    assert (schedule_of(pinned), pinned.kernels[0].chosen.source) == (CONTROLLED, Source.PIN)  # type: ignore[union-attr]
    with pytest.raises(
        PinnedControlsError, match=r"matmul \(\w+\) is pinned with ptxas controls, and the ptxas 12.8.93"
    ):
        chosen(store, ControlsHere(HERE))
    assert schedule_of(chosen(store, ControlsHere(HERE), pins=False)) == PLAIN
    tuned(store, HERE, [(SECOND, 9.5)], None)
    store.record_pin(matmul().key, SECOND, HERE.key, author="me")
    assert schedule_of(chosen(store, ControlsHere(HERE))) == SECOND, "its own pin decides"


def test_damaged_bytes_are_never_applied(store: Store, found: Tools, tmp_path: Path) -> None:
    import sqlite3

    tuned_with_controls(store, found)
    with sqlite3.connect(tmp_path / "t.db") as raw:
        raw.execute("UPDATE acf SET bytes = ?", (b"other",))
    raw.close()
    one = chosen(store, ControlsHere(HERE, found.path))
    assert schedule_of(one) == PLAIN
    assert "has other bytes" in one.notes[0]


def test_a_python_file_leaves_controls_out(store: Store, found: Tools) -> None:
    tuned_with_controls(store, found)
    program = Program(matmul().body, "torch.matmul(x, w)", "cuda")
    controls = ControlsHere(none_because=NO_FILE_APPLIES)
    one = deployment(program, store, found.context.key, Target(), ColdModel(), controls=controls)
    assert schedule_of(one) == PLAIN
    assert one.notes[0].endswith("are left out: a Python file can't apply ptxas controls")


def test_a_child_assembles_with_that_ptxas_and_those_bytes(store: Store, found: Tools) -> None:
    tuned_with_controls(store, found)
    one = chosen(store, ControlsHere(HERE, found.path))
    (kernel,) = compiled_kernels(listed_kernels(one), one.target, sass=False, controls=one.controls)
    assert kernel.failure == ""
    assert ".target sm_90" in kernel.ptx
    assert "slower" in assemblies(found.path.parent)


def test_a_process_that_runs_models_assembles_with_it_for_a_while(
    store: Store, found: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned_with_controls(store, found)
    one = chosen(store, ControlsHere(HERE, found.path))
    monkeypatch.setattr("engine.deploy.execution.kernel_folder", lambda: tmp_path / "kept here")
    (source,) = kernel_sources(one).values()
    before = ptxas_path(90)
    codes = []
    for fits in (one, replace(one, controls=replace(one.controls, files=()))):  # type: ignore[type-var]
        with assembling(fits) as folder:
            assert ptxas_path(90) == str(found.path)
            here = source if fits is one else replace(source, acf="")
            codes.append(machine_code(compile_source(here, one.target, folder).kernel.kernel))
    assert codes[0] != codes[1]
    assert (folder / CONTROLS_FOLDER / f"{SHA}.acf").read_bytes() == SLOWER
    assert ptxas_path(90) == before
    gone = replace(one.controls.assembler, path=str(tmp_path / "nothing"))  # type: ignore[union-attr]
    with (
        pytest.raises(BuildError, match="Triton calls the ptxas"),
        assembling(replace(one, controls=replace(one.controls, assembler=gone))),  # type: ignore[type-var]
    ):
        pass
    assert ptxas_path(90) == before


def test_an_error_of_a_pin_is_one_of_deployment() -> None:
    assert issubclass(PinnedControlsError, DeploymentError)


def test_a_file_carries_the_hash_and_the_best_without(store: Store, found: Tools, tmp_path: Path) -> None:
    tuned_with_controls(store, found)
    store.record_pin(matmul().key, CONTROLLED, found.context.key, author="me")
    text = export_schedules(store, "", Carried.BOTH, "emmy export").text
    document = json.loads(text)
    assert {(row["acf"], "pin" in row) for row in document["schedules"]} == {(SHA, True), ("", False)}
    assert document["controls"] == {SHA: "one"}
    assert SLOWER.decode() not in text
    content = read_schedule_file(document, "a.json")
    with Store.open(tmp_path / "elsewhere.db") as other:
        tuned(other, found.context, [], None)
        received = receive_schedules(other, content, "you")
        assert received.pins == ()
        assert "is not in this database: tune with `emmy tune --acf` and that file first" in received.left_out[0]
        assert schedule_of(chosen(other, ControlsHere(HERE, found.path))) == PLAIN
    again = receive_schedules(store, content, "you")
    assert (again.pins, again.left_out) == ((), ())


def test_a_ptxas_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no file: name the ptxas that controls were measured with"):
        compile_callable(torch.sin, ptxas=tmp_path / "none")
    with pytest.raises(ValueError, match="is no file"):
        emmy_backend(torch.fx.symbolic_trace(lambda a: a.sin()), [], options={"ptxas": str(tmp_path / "none")})
