"""`emmy tune --acf`: what it asks a session for, and what it refuses before anything is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.cli.application import main
from engine.measure import CounterReader, GeneratorRequest
from engine.tune import ControlsRequest, CounterObjective, Objective
from tests.cli.test_tune import CODE, Sessions, sessions
from tests.measure.fake_ncu import fake_ncu

__all__ = ["sessions"]


def leave(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["tune", *arguments])
    return int(left.value.code or 0)


def test_controls_reach_the_session(sessions: Sessions, tmp_path: Path) -> None:
    words = ("--acf", "a pack", "--acf", "one.acf", "--ptxas", "p x/ptxas", "--acf-after", "--objective", "registers")
    assert leave("--code", CODE, "--db", str(tmp_path / "x.db"), *words) == 0
    asked: dict[str, Any] = sessions.asked
    assert asked["controls"] == ControlsRequest((Path("a pack"), Path("one.acf")), Path("p x/ptxas"), after=True)
    assert asked["settings"].objective is Objective.REGISTERS


def test_without_acf_nothing_is_asked(sessions: Sessions, tmp_path: Path) -> None:
    assert leave("--code", CODE, "--db", str(tmp_path / "x.db")) == 0
    assert sessions.asked["controls"] is None
    assert sessions.asked["settings"].objective is Objective.TIME


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--ptxas", "x"], "--ptxas names the assembler of --acf and --generate: give one of them"),
        (["--acf-after"], "none are named: give --acf or --generate"),
        (["--objective", "warps"], "--objective is time, registers, spills or ncu:METRIC, not 'warps'"),
        (["--objective", "ncu:a", "--device", "replay"], "reads counters of a GPU of this machine"),
        (["--shared-acf"], "--shared-acf chooses one of several files: give them with --acf"),
        (["--acf", "x", "--shared-acf", "--acf-after"], "--shared-acf searches one file for all shapes"),
        (["--search-space", "x"], "--search-space is what --generate breeds from: give it too"),
        (["--acf", "x", "--device", "replay"], "a replay measures nothing: leave --acf away"),
        (["--generate", "5", "--device", "replay"], "--generate searches controls on a GPU, and a replay"),
        (["--acf", "x", "--generate", "5", "--device", "replay"], "leave --acf and --generate away"),
    ],
)
def test_contradictions_are_refused(
    words: list[str],
    sentence: str,
    sessions: Sessions,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert leave("--code", CODE, *words) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
    assert sessions.asked == {}


def test_one_file_for_all_shapes_and_bred_files_reach_the_session(sessions: Sessions, tmp_path: Path) -> None:
    common = ("--code", CODE, "--db", str(tmp_path / "x.db"))
    assert leave(*common, "--acf", "a pack", "--shared-acf") == 0
    assert sessions.asked["controls"] == ControlsRequest((Path("a pack"),), shared=True)
    assert leave(*common, "--generate", "8", "--search-space", "x.bin") == 0
    assert sessions.asked["controls"] == ControlsRequest((), generate=GeneratorRequest(8, space=Path("x.bin")))


def test_a_metric_is_tried_before_anything_is_opened(
    sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--code", CODE, "--db", str(tmp_path / "x.db"), "--objective", "ncu:max:a.b")
    monkeypatch.setenv("PATH", str(tmp_path / "cuda"))
    assert leave(*words) == 1
    assert "needs NVIDIA's ncu, which isn't on the PATH" in " ".join(capsys.readouterr().err.split())
    assert sessions.asked == {}
    fake_ncu(tmp_path / "cuda")
    assert leave(*words) == 0
    assert sessions.asked["settings"].objective == CounterObjective("a.b", most=True)
    assert sessions.asked["counters"] == CounterReader(str(tmp_path / "cuda" / "ncu"), "a.b")
