"""`emmy eval kernels`: times over floors where a GPU's ceilings are recorded, and whether ranking misled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from engine.cli import eval_kernels
from engine.cli.application import main
from engine.ir.roofline import Ceilings
from engine.store import Store

COPY_GBS = 100.0


def leave(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["eval", "kernels", *arguments])
    return int(left.value.code or 0)


@pytest.fixture
def with_ceilings(recorded: Path, tmp_path: Path) -> Path:
    path = tmp_path / "t.db"
    shutil.copy(recorded, path)
    with Store.open(path) as store:
        store.record_ceilings(store.contexts()[0].key, Ceilings(COPY_GBS, (("fp32", 50.0),)))
    return path


def test_times_are_shown_over_their_floors(with_ceilings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--db", str(with_ceilings), "--json") == 0
    matmul, relu = json.loads(capsys.readouterr().out)
    assert relu["floor_us"] == pytest.approx(2 * 4 * 64 * 64 / (COPY_GBS * 1e3))
    assert (relu["bound"], relu["pairs"], relu["spearman"]) == ("memory", 0, None)
    assert relu["over_floor"] == pytest.approx(relu["best_us"] / relu["floor_us"])
    assert matmul["best_us"] == 14.0
    assert leave("--db", str(with_ceilings), "--kernel", "matmul") == 0
    head, row, beaten = capsys.readouterr().out.splitlines()
    assert head.split()[:5] == ["label", "shape", "best_us", "regime", "over_floor"]
    assert f"{matmul['over_floor']:.2f}x" in row
    assert (matmul["over_floor"] < 1, matmul["bound"], matmul["at_copy_rate"]) == (True, "memory", True)
    assert beaten.startswith("below 1.00x: the floor is at the rate of a copy")


def test_without_ceilings_there_is_no_floor(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--db", str(recorded), "--json") == 0
    assert {line["floor_us"] for line in json.loads(capsys.readouterr().out)} == {None}


def test_the_demo_says_how_its_ranking_did(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eval_kernels, "terminal_width", lambda stream: 60)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert leave("--demo") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    kinds = lines[lines.index("") + 1 :]
    assert kinds[0].split() == ["kind", "kernels", "pairs", "spearman", "regret", "ranking"]
    assert {line.split()[-1] for line in kinds[1:]} == {"holds"}


def test_a_kernel_that_nothing_matches_is_bad_input(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--db", str(recorded), "--kernel", "no such", "--json") == 2
    assert capsys.readouterr().out.strip() == "[]"
