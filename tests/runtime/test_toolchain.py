"""The ptxas of a context is the one that Triton calls, and its version what it says itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.runtime.toolchain import _ptxas_version, ptxas_path


def test_the_ptxas_is_the_one_that_a_compile_uses() -> None:
    path = ptxas_path(90)
    assert Path(path).is_file()
    assert re.fullmatch(r"\d+\.\d+\.\d+", _ptxas_version(path))


def test_a_chosen_ptxas_is_the_one_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = tmp_path / "ptxas"
    chosen.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.3, V13.3.73'\n")
    chosen.chmod(0o755)
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(chosen))
    assert (ptxas_path(90), _ptxas_version(ptxas_path(90))) == (str(chosen), "13.3.73")


def test_no_ptxas_is_an_empty_version(tmp_path: Path) -> None:
    assert _ptxas_version("") == ""
    assert _ptxas_version(str(tmp_path / "missing")) == ""
