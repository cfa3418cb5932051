"""`emmy eval acf`: what controls came to, with a run on a fake GPU behind it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.application import main
from engine.store import merge_databases
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


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A joint search and one after the schedules, each from an empty database, merged."""
    folder = tmp_path_factory.mktemp("ways")
    tuned(folder / "joint.db", Bench(Turns()), FAST, SLOW, WRONG)
    tuned(folder / "after.db", Bench(Turns()), FAST, SLOW, WRONG, after=True)
    merge_databases((folder / "joint.db", folder / "after.db"), folder / "both.db")
    return folder / "both.db"


def test_joint_and_after_stand_side_by_side(both_ways: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (report,) = json.loads(said(capsys, "--db", str(both_ways), "--json"))
    joint, after = report["searches"]
    assert [joint["mode"], after["mode"]] == ["joint", "after"]
    assert (after["tried"], after["failed"], after["set_aside"]) == (3, 1, [])
    assert joint["failed"] >= 2
    assert joint["candidates"] > joint["tried"] > joint["failed"]
    assert (joint["cached"], after["cached"]) == (0, 1), "the best schedule's own row opens the search over its files"
    for one in (joint, after):
        assert one["used"] == FAST.sha256[:12]
        assert one["best_with_us"] < one["best_without_us"]
        assert one["seconds"] > 0
        assert one["ended"].startswith("patience")
    (aside,) = joint["set_aside"]
    assert aside[0] == WRONG.sha256[:12]
    assert "candidates failed and none ran (wrong result: its error is 0.7)" in aside[1]
    assert report["joint_against_after"].startswith("joint against after: ")


def test_what_was_set_aside_is_told_with_its_reason(both_ways: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(said(capsys, "--db", str(both_ways)).split())
    assert f"joint set {WRONG.sha256[:12]} aside: 2 candidates failed and none ran (wrong result" in text
    assert "two runs' times, which were not taken in turns" in text


def test_one_way_alone_is_compared_with_nothing(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (report,) = json.loads(said(capsys, "--db", str(database), "--json"))
    assert [one["mode"] for one in report["searches"]] == ["after"]
    assert report["joint_against_after"] == ""
    assert "joint against after" not in said(capsys, "--db", str(database))
