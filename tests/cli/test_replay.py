"""The whole command on a recorded database: no scripted session, no GPU, no torch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.application import main


def leave(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["tune", "--device", "replay", *arguments])
    return int(left.value.code or 0)


def test_a_replay_finds_the_recorded_best(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = recorded.read_bytes()
    assert leave("--db", str(recorded), "-v", "--json") == 0
    said = capsys.readouterr()
    found = json.loads(said.out.splitlines()[-1])
    (kernel,) = found["kernels"]
    assert (kernel["label"], kernel["best_us"], found["failed"]) == ("matmul", 14.0, 3)
    assert "BLOCK_M=16" in kernel["schedule"]
    assert "NUM_WARPS=2" in kernel["schedule"]
    steps = [line for line in said.out.splitlines() if "  #" in line]
    assert len(steps) == 7
    assert said.err == ""
    assert recorded.read_bytes() == before


def test_the_same_seed_replays_the_same_steps(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = []
    for _ in range(2):
        assert leave("--db", str(recorded), "-v", "--seed", "5") == 0
        runs.append([line for line in capsys.readouterr().out.splitlines() if "  #" in line])
    assert runs[0] == runs[1]


def test_text_that_no_recorded_program_has(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--db", str(recorded), "--code", "conv2d") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("emmy: ")
    assert "conv2d" in said.err


def test_a_database_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--db", str(tmp_path / "none.db")) == 2
    assert str(tmp_path / "none.db") in capsys.readouterr().err
