"""The toolchain is described from what is installed, without torch being loaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.runtime import describe_toolchain
from engine.runtime.toolchain import _ptxas_version


def test_versions_are_those_that_a_compile_uses() -> None:
    tools = describe_toolchain(90)
    assert re.fullmatch(r"\d+\.\d+\.\d+", tools.ptxas)
    assert Path(tools.ptxas_path).is_file()
    assert tools.triton.startswith("3.")
    assert tools.torch.startswith("2.")


def test_a_chosen_ptxas_is_the_one_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = tmp_path / "ptxas"
    chosen.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 13.3, V13.3.73'\n")
    chosen.chmod(0o755)
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(chosen))
    tools = describe_toolchain(90)
    assert (tools.ptxas_path, tools.ptxas) == (str(chosen), "13.3.73")


def test_no_ptxas_is_an_empty_version(tmp_path: Path) -> None:
    assert _ptxas_version("") == ""
    assert _ptxas_version(str(tmp_path / "missing")) == ""
