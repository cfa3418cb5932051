"""A path that can't be meant is one sentence of every command, and bad input."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.application import main
from engine.cli.errors import BAD_INPUT, FAILED
from tests.cli.hostile import fill

NOBODY = "~nosuchuserhere/x"
LONG = "x" * 300


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("typed") / "tune.db"
    fill(path)
    return path


@pytest.mark.parametrize("bad", [NOBODY, LONG])
@pytest.mark.parametrize(
    "command",
    [
        *(("eval", "variants", "--db", "BAD"), ("pins", "--db", "BAD"), ("unpin", "x", "--db", "BAD")),
        *(("tune", "--code", "f(x)", "--db", "BAD"), ("fit", "--db", "BAD"), ("import", "BAD", "--db", "DB")),
        *(("import", "DB", "--db", "BAD"), ("export", "-o", "BAD", "--db", "DB"), ("export", "-o", "x", "--db", "BAD")),
        *(("merge", "DB", "BAD"), ("merge", "BAD", "DB"), ("merge", "DB", "DB", "-o", "BAD")),
        *(("compile", "-o", "BAD", "--db", "DB"), ("explain", "--db", "BAD"), ("doctor", "--ptxas", "BAD")),
    ],
    ids=" ".join,
)
def test_every_command_says_so(
    command: tuple[str, ...], bad: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"BAD": bad, "DB": str(database)}
    with pytest.raises(SystemExit) as left:
        main([words.get(word, word) for word in command])
    said = capsys.readouterr()
    assert left.value.code == BAD_INPUT, said.err
    assert said.err.startswith("emmy: ")
    assert said.err.count("\n") == 1
    assert any(words in said.err for words in ("no user nosuchuserhere", "too long")), said.err


def test_a_working_folder_that_is_gone(tmp_path: Path) -> None:
    program = (
        "import os, sys; os.mkdir(sys.argv[1]); os.chdir(sys.argv[1]); os.rmdir(sys.argv[1])\n"
        "from engine.cli.application import main\n"
        "main(['eval', 'variants', '--db', 'x.db'])"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", program, str(tmp_path / "gone")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == BAD_INPUT, done.stderr
    assert "working folder is gone" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_doctor_finds_it_broken(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["doctor", "--db", NOBODY])
    assert left.value.code == FAILED
    assert "there is no user nosuchuserhere" in " ".join(capsys.readouterr().out.split())
