"""A winner with ptxas controls on the command line: built with its ptxas and file, or left out in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.application import main
from engine.store import Store
from tests.deploy.controlled_samples import CONTROLLED, SHA, Tools, tools, tuned_with_controls
from tests.deploy.samples import matmul
from tests.measure.fake_ptxas import assemblies

TEXT = "torch.matmul(x, w)"


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    monkeypatch.delenv("TRITON_PTXAS_PATH", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    made = tools(tmp_path / "the tools")
    with Store.open(tmp_path / "t.db") as store:
        tuned_with_controls(store, made)
    return made


def left(*words: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    return int(caught.value.code or 0)


def test_compile_builds_it_with_its_ptxas(found: Tools, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, words = str(tmp_path / "out"), ("--code", TEXT, "--db", str(tmp_path / "t.db"), "--json")
    assert left("compile", *words, "--out", out, "--ptx", "--ptxas", str(found.path)) == 0
    (kernel,) = json.loads(capsys.readouterr().out.splitlines()[-1])[0]["kernels"]
    assert kernel["schedule"]["ACF"] == SHA
    assert kernel["failure"] == ""
    assert "slower" in assemblies(found.path.parent)
    assert left("compile", *words, "--out", out, "--ptx") == 0
    told = capsys.readouterr()
    (plain,) = json.loads(told.out.splitlines()[-1])[0]["kernels"]
    assert plain["schedule"]["ACF"] == ""
    assert "that its controls were measured with isn't here" in " ".join(told.err.split())
    assert left("compile", *words, "--out", out, "--ptxas", str(tmp_path / "none")) == 2
    assert "can't be run as a ptxas" in " ".join(capsys.readouterr().err.split())


def test_explain_names_the_ptxas_and_refuses_a_pin_without_it(
    found: Tools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("explain", "--code", TEXT, "--db", str(tmp_path / "t.db"))
    assert left(*words, "--json", "--ptxas", str(found.path)) == 0
    (said,) = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (said["ptxas"], said["notes"]) == (found.assembler.identity, [])
    assert left(*words) == 0
    assert "a deploy measurement decides nothing here" in " ".join(capsys.readouterr().out.split())
    with Store.open(tmp_path / "t.db") as store:
        store.record_pin(matmul().key, CONTROLLED, found.context.key, author="me")
    assert left(*words) == 1
    assert "is pinned with ptxas controls" in " ".join(capsys.readouterr().err.split())


def test_files_carry_hashes_and_a_module_none(found: Tools, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database, module = ("--db", str(tmp_path / "t.db")), tmp_path / "kernels.py"
    assert left("export", *database, "-o", str(tmp_path / "s.json")) == 0
    assert "whoever imports them needs the files too" in " ".join(capsys.readouterr().err.split())
    assert left("export", TEXT, "--python", *database, "-o", str(module)) == 0
    assert "are left out: a Python file can't apply ptxas controls" in " ".join(capsys.readouterr().err.split())
    assert SHA not in module.read_text()
    assert "are left out: a Python file can't apply ptxas controls" in module.read_text()
    compile(module.read_text(), str(module), "exec")
