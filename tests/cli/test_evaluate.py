"""`emmy eval` on a recorded database: what a terminal, a pipe and a program get."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.cli import database as database_module
from engine.cli import eval_failures, eval_groupings, eval_variants
from engine.cli.application import main
from engine.data import demo_database
from engine.store import Store


def leave(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["eval", *arguments])
    return int(left.value.code or 0)


def test_times_that_are_none_are_not_counted_as_ok(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "edited.db"
    shutil.copy(recorded, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE measurement SET median_us = -1 WHERE status = 'ok'")
    assert leave("variants", "--db", str(path), "--kernel", "matmul") == 0
    assert "NVIDIA H200: 0 ok, 3 failed, 4 with a time that can't be one" in capsys.readouterr().out


def test_variants_in_a_pipe(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("variants", "--db", str(recorded), "--kernel", "matmul", "--top", "3") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("matmul 512x512x512 float32 ")
    assert lines[1] == "NVIDIA H200: 4 ok, 3 failed"
    assert lines[2] == "all with PRECISION=ieee NUM_STAGES=3"
    assert lines[3].split()[:5] == ["rank", "best_us", "regime", "us", "low_us"]
    assert lines[3].split()[-2:] == ["BLOCK_M", "NUM_WARPS"]
    assert lines[4].split()[:2] == ["1", "14.00"]
    assert [line.split()[-2:] for line in lines[4:]] == [["16", "2"], ["16", "4"], ["64", "2"]]


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("command", ["variants", "failures", "groupings"])
def test_a_terminal_is_never_overflowed(
    recorded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int, command: str
) -> None:
    module = {"variants": eval_variants, "failures": eval_failures, "groupings": eval_groupings}[command]
    monkeypatch.setattr(module, "terminal_width", lambda stream: columns)
    assert leave(command, "--db", str(recorded)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    assert any("14.00" in line for line in lines) or command == "failures"


def test_the_narrowest_terminal_still_shows_the_knobs(
    recorded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eval_variants, "terminal_width", lambda stream: 30)
    assert leave("variants", "--db", str(recorded), "--kernel", "contraction") == 0
    assert "BLOCK_M=16" in capsys.readouterr().out


def test_variants_as_json(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("variants", "--db", str(recorded), "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["label"] for row in rows] == ["matmul"] * 7 + ["relu"]
    first, failed = rows[0], rows[6]
    assert (first["rank"], first["us"], first["BLOCK_M"], first["NUM_WARPS"]) == (1, 14.0, 16, 2)
    assert (first["status"], first["failure"], first["registers"]) == ("ok", "", 96)
    assert (failed["status"], failed["failure"], failed["us"]) == ("failed", "out of shared memory", None)


@pytest.mark.parametrize("text", ["RELU", "pointwise", "64x64"])
def test_kernel_matches_name_family_and_shape(recorded: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert leave("variants", "--db", str(recorded), "--kernel", text, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["label"] for row in rows] == ["relu"]
    assert leave("variants", "--db", str(recorded), "--kernel", rows[0]["kernel"], "--json") == 0
    assert json.loads(capsys.readouterr().out) == rows


def test_failures_in_a_pipe(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("failures", "--db", str(recorded)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "count     3 × out of shared memory"
    assert lines[1] == "kernels   matmul 512x512x512 float32 (3)"
    assert "knobs     BLOCK_M=256 (0.0 % of others)" in lines
    assert "example   Required: 262144, Hardware limit: 232448" in lines


def test_failures_name_what_is_forbidden(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(recorded) as store:
        corner = store.forbid({"BLOCK_M": 256}, family="contraction", author="ana")
    assert leave("failures", "--db", str(recorded)) == 0
    with Store.open(recorded) as store:
        store.allow(corner.id)
    assert capsys.readouterr().out.splitlines()[-1] == "forbidden BLOCK_M=256 for every contraction, by ana"


def test_failures_as_json(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("failures", "--db", str(recorded), "--json") == 0
    (cluster,) = json.loads(capsys.readouterr().out)
    assert (cluster["count"], cluster["kinds"], cluster["kernels"]) == (3, ["out of shared memory"], ["matmul"])
    assert cluster["knobs"] == {"BLOCK_M": 256}


def test_a_kernel_without_failures(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("failures", "--db", str(recorded), "--kernel", "relu") == 0
    assert capsys.readouterr() == ("no candidate failed\n", "")


@pytest.mark.parametrize("command", ["variants", "failures"])
def test_a_kernel_that_is_not_there(recorded: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert leave(command, "--db", str(recorded), "--kernel", "conv", "--json") == 2
    said = capsys.readouterr()
    assert said.out == "[]\n"
    assert said.err == f"emmy: no measured kernel of {recorded} matches 'conv'; leave --kernel away to see them all\n"


@pytest.mark.parametrize("command", ["variants", "failures"])
@pytest.mark.parametrize("columns", [None, 80], ids=["pipe", "terminal"])
def test_a_kernel_that_is_not_there_prints_no_table(
    recorded: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    columns: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (eval_variants, eval_failures):
        monkeypatch.setattr(module, "terminal_width", lambda stream: columns)
    assert leave(command, "--db", str(recorded), "--kernel", "conv") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"emmy: no measured kernel of {recorded} matches 'conv'; leave --kernel away to see them all\n"


def test_a_database_without_measurements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.db"
    with Store.open(path):
        pass
    assert leave("variants", "--db", str(path)) == 0
    assert capsys.readouterr() == (f"{path} holds no measurement yet\n", "")
    assert leave("variants", "--db", str(path), "--kernel", "conv") == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("command", ["variants", "failures"])
def test_bad_databases(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no database at all, but a text of some length, to be sure of it " * 20)
    for path in (text, tmp_path / "missing.db"):
        assert leave(command, "--db", str(path)) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("emmy: ")
        assert str(path) in said.err
        assert said.err.count("\n") == 1
    assert not (tmp_path / "missing.db").exists()


def test_the_demo(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "demo.db.gz"
    shipped.write_bytes(gzip.compress(recorded.read_bytes()))
    monkeypatch.setattr(database_module, "demo_database", lambda: demo_database(tmp_path / "data", shipped))
    assert leave("variants", "--demo", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 8
    assert leave("variants", "--demo", "--db", str(recorded)) == 2
    assert "brings its own database" in capsys.readouterr().err


def test_a_missing_demo_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "demo_database", lambda: demo_database(tmp_path, tmp_path / "none.gz"))
    assert leave("failures", "--demo") == 2
    assert "has no demo database" in capsys.readouterr().err
