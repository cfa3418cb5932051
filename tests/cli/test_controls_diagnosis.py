"""What `emmy doctor` says of ptxas controls, with a ptxas made of Triton's and made-up files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.cli.controls_diagnosis import diagnose_controls
from engine.measure import assembler
from tests.measure.fake_ptxas import fake_ptxas

H200: dict[str, Any] = {"nvml": {"gpus": [{"name": "H200", "capability": "9.0"}]}, "torch": {}}
NO_GPU: dict[str, Any] = {"nvml": {"error": "none"}, "torch": {"error": "none"}}


def pack(folder: Path, *texts: str) -> list[Path]:
    folder.mkdir(parents=True)
    for text in texts:
        (folder / f"{text}.acf").write_text(text)
    return [folder]


def test_files_that_fit_are_counted(tmp_path: Path) -> None:
    files = pack(tmp_path / "a pack", "slower", "ignored", "reject")
    part, found = diagnose_controls(H200, files, fake_ptxas(tmp_path / "tools"))
    assert (part.part, part.state, part.cost) == ("ptxas controls", "ok", "")
    assert "takes controls" in part.found
    assert found.state == "some"
    assert found.found == "2 of 3 fit ptxas 12.8.93 and H200; 1 of them change the code of a probe"
    assert "reject: ptxas fatal" in found.cost


def test_without_a_gpu_it_says_for_which_chip(tmp_path: Path) -> None:
    _, found = diagnose_controls(NO_GPU, pack(tmp_path / "pack", "slower"), fake_ptxas(tmp_path / "tools"))
    assert "sm_90 (no GPU is here to ask for)" in found.found


def test_why_the_layer_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = pack(tmp_path / "pack", "slower")
    ignoring = fake_ptxas(tmp_path / "ignoring", obeys=False)
    _, found = diagnose_controls(H200, files, ignoring)
    assert found.state == "off"
    assert "writes the same code with and without it" in found.cost
    (only,) = diagnose_controls(H200, [], fake_ptxas(tmp_path / "tools"))
    assert (only.state, "no file was named" in only.cost) == ("ready", True)
    (off,) = diagnose_controls(H200, files, fake_ptxas(tmp_path / "old", takes=False))
    assert (off.state, "has no --apply-controls" in off.cost) == ("off", True)
    monkeypatch.setattr(assembler, "candidates", lambda: iter(()))
    (none,) = diagnose_controls(H200, files, None)
    assert ".[acf]" in none.cost
    _, broken = diagnose_controls(H200, [tmp_path / "missing"], fake_ptxas(tmp_path / "tools"))
    assert (broken.state, "can't be read" in broken.cost) == ("broken", True)
