"""`emmy eval acf`: what controls came to, with a run on a fake GPU behind it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.application import main
from tests.tune.test_controlled import FAST, SLOW, WRONG, Bench, Turns, tuned


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as left:
        main(["eval", "acf", *arguments])
    assert not left.value.code
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("acf") / "t.db"
    tuned(path, Bench(Turns()), FAST, SLOW, WRONG, after=True)
    return path


def test_a_win_is_told_with_its_evidence(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "--db", str(database))
    assert f"{FAST.sha256[:12]} wins: 1.1" in text
    assert "corrected for 3 tried" in text
    assert "timed against itself beside them" in text
    assert "within noise" in text


def test_the_rows_are_there_as_json(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (report,) = json.loads(said(capsys, "--db", str(database), "--json"))
    rows = {row["sha256"]: row for row in report["rows"]}
    assert set(rows) == {"", FAST.sha256, SLOW.sha256, WRONG.sha256}
    assert rows[""]["name"] == "none"
    assert rows[""]["ratio"] == 1.0
    assert rows[FAST.sha256]["ratio"] > 1.05
    assert rows[FAST.sha256]["verdict"] == "faster"
    assert rows[WRONG.sha256]["failed"] == 1
    assert rows[WRONG.sha256]["best_us"] is None


def test_no_win_is_told_honestly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tuned(tmp_path / "lucky.db", Bench(Turns(gain={})), FAST, after=True)
    assert "no controls win: none of 1 tried is faster beyond the noise" in said(
        capsys, "--db", str(tmp_path / "lucky.db")
    )
    tuned(tmp_path / "slow.db", Bench(Turns()), SLOW, after=True)
    assert "none was faster than the best without" in said(capsys, "--db", str(tmp_path / "slow.db"))


def test_a_database_without_controls_says_so(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no candidate with ptxas controls" in said(capsys, "--db", str(recorded))


def test_a_kernel_that_isnt_there_is_bad_input(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["eval", "acf", "--db", str(database), "--kernel", "softmax", "--json"])
    assert left.value.code == 2
    told = capsys.readouterr()
    assert (json.loads(told.out), told.err.count("\n")) == ([], 1)
    assert "matches 'softmax'" in told.err


def test_the_demo_holds_no_controls(capsys: pytest.CaptureFixture[str]) -> None:
    assert "holds no candidate with ptxas controls" in said(capsys, "--demo")
