"""A ptxas is known by its binary; one that takes no controls, or is none, is refused in words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.measure import ControlsError, find_assembler
from engine.measure import assembler as module

from .fake_ptxas import fake_ptxas, real_ptxas


def test_it_says_version_binary_and_whether_it_takes_controls(tmp_path: Path) -> None:
    path = fake_ptxas(tmp_path / "with blanks", version="13.3.73")
    found = find_assembler(path)
    assert (found.path, found.version, found.takes_controls) == (str(path), "13.3.73", True)
    assert found.identity == f"13.3.73+{found.sha256[:12]}"
    assert set(found.environment.values()) == {str(path)}


def test_two_with_one_version_text_are_told_apart(tmp_path: Path) -> None:
    first = find_assembler(fake_ptxas(tmp_path / "a", salt="one"))
    second = find_assembler(fake_ptxas(tmp_path / "b", salt="two"))
    assert first.version == second.version
    assert first.identity != second.identity


def test_one_without_the_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ControlsError, match=r"has no --apply-controls: name one of CUDA 13\.3"):
        find_assembler(real_ptxas())
    with pytest.raises(ControlsError, match="has no --apply-controls"):
        find_assembler(fake_ptxas(tmp_path, takes=False))


def test_what_is_no_ptxas_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(ControlsError, match="can't be run as a ptxas"):
        find_assembler(other)
    other.chmod(0o755)
    with pytest.raises(ControlsError, match="does not print a version"):
        find_assembler(other)
    with pytest.raises(ControlsError, match="can't be run as a ptxas: No such file"):
        find_assembler(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ControlsError, match="can't be run as a ptxas: it is a pipe or a device"):
        find_assembler(tmp_path / "pipe")


def test_one_that_says_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 600\n")
    silent.chmod(0o755)
    monkeypatch.setattr(module, "ASK_LIMIT_S", 0.2)
    with pytest.raises(ControlsError, match="says nothing"):
        find_assembler(silent)


def test_the_first_here_that_takes_controls_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = fake_ptxas(tmp_path / "old", takes=False), fake_ptxas(tmp_path / "new")
    monkeypatch.setattr(module, "candidates", lambda: iter([tmp_path / "missing", old, new]))
    assert find_assembler().path == str(new)
    monkeypatch.setattr(module, "candidates", lambda: iter([old]))
    with pytest.raises(ControlsError, match=r"no ptxas here takes controls \(.*old.* is 12\.8\.93\).*\.\[acf\]"):
        find_assembler()
