"""A run with a grouping that can't win: each report says so, and none takes its kernels for untuned or failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.application import main
from engine.store import Store
from tests.tune.test_bounding import SLOW_MEMORY, near_the_floor, tuned

REASON = "FUSE_EPILOGUE_0=apart: can't win: its kernels take"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bounded")
    tuned(near_the_floor(SLOW_MEMORY), folder)
    return folder / "t.db"


def said(capsys: pytest.CaptureFixture[str], database: Path, *arguments: str) -> str:
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--db", str(database)])
    assert not left.value.code
    return capsys.readouterr().out


def test_groupings_say_which_and_by_how_much(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, database, "eval", "groupings")
    assert "2 entered, 1 can't win, 0 left untried" in text
    assert REASON in text
    assert "failed" not in text
    (told,) = json.loads(said(capsys, database, "eval", "groupings", "--json"))
    assert (told["entered"], told["failed"], told["bounded"]) == (2, 0, 1)
    bounded = told["groupings"][1]
    assert (bounded["sum_us"], bounded["chosen"]) == (None, False)
    assert {kernel["us"] for kernel in bounded["kernels"]} == {None}


def test_kernels_variants_and_failures_know_only_what_was_tuned(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store.open(database, read_only=True) as store:
        groupings = store.recorded_groupings(store.runs()[0].id)
    (tuned_key,) = groupings[0].grouping.kernel_counts()
    assert len(groupings[1].grouping.kernel_counts()) == 2
    assert [row["kernel"] for row in json.loads(said(capsys, database, "eval", "kernels", "--json"))] == [tuned_key]
    assert {row["kernel"] for row in json.loads(said(capsys, database, "eval", "variants", "--json"))} == {tuned_key}
    assert said(capsys, database, "eval", "failures").strip() == "no candidate failed"


def test_explain_says_why_the_other_answer_was_left_out(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(said(capsys, database, "explain").split())
    assert REASON in text
    assert "(its floor by memory)" in text
    (told,) = json.loads(said(capsys, database, "explain", "--json"))
    (fork,) = told["forks"]
    assert fork["answer"] == "fused"
    second = fork["runner_up"]
    assert (second["answer"], second["us"], second["chosen_us"], second["source"]) == ("apart", None, None, None)
    assert second["reason"].startswith("can't win: its kernels take")
