"""`emmy tune --acf`: what it asks a session for, and what it refuses before anything is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.cli.application import main
from engine.tune import ControlsRequest, Objective
from tests.cli.test_tune import CODE, Sessions, sessions

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
        (["--ptxas", "x"], "--ptxas names the assembler of --acf: give --acf too"),
        (["--acf-after"], "--acf names none: give it too"),
        (["--objective", "warps"], "--objective is time, registers or spills, not 'warps'"),
        (["--acf", "x", "--device", "replay"], "a replay measures nothing"),
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
