"""`emmy doctor` on this machine, whatever it has, and with a probe that dies."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.cli import doctor as doctor_module
from engine.cli.application import main
from engine.store import Store

BARE: dict[str, Any] = {
    "nvml": {"error": "not installed"},
    "driver": None,
    "torch": {"error": "not installed"},
    "triton": {"error": "not installed"},
    "ptxas": {"error": "not installed"},
}


def leave(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["doctor", *arguments])
    return int(left.value.code or 0)


def spoil(path: Path) -> None:
    """A database whose first pages are whole, and a later one isn't."""
    Store.open(path).close()
    data = path.read_bytes()
    path.write_bytes(data[:-4096] + b"\xa5" * 4096)


def said(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    """Let the child process end with this answer, or with this exception."""

    def run(*_: Any, **__: Any) -> subprocess.CompletedProcess[str]:
        if isinstance(answer, Exception):
            raise answer
        return subprocess.CompletedProcess([], -6, stdout=answer, stderr="")

    monkeypatch.setattr(doctor_module.subprocess, "run", run)


def test_this_machine(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--db", str(recorded), "--json") == 0
    found = {row["part"]: row for row in json.loads(capsys.readouterr().out)}
    assert {"driver", "torch", "triton", "ptxas", "NVML", "database", "demo"} <= set(found)
    assert found["database"]["state"] == "ok"
    assert "1 runs" in found["database"]["found"] or "1 run" in found["database"]["found"]
    assert all(set(row) == {"part", "state", "found", "cost"} for row in found.values())


def test_a_bare_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    said(monkeypatch, "a library's banner\n" + json.dumps(BARE) + "\n")
    assert leave() == 0
    text = capsys.readouterr().out
    assert "no torch: tuning is off; browsing and replay work; pip install '.[tune]' in Emmy's folder" in text
    assert "none yet" in text
    assert not (tmp_path / "xdg_data_home").exists()


def test_the_terminal_is_not_overflowed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    said(monkeypatch, json.dumps(BARE))
    monkeypatch.setattr(doctor_module, "terminal_width", lambda stream: 80)
    assert leave() == 0
    assert max(len(line) for line in capsys.readouterr().out.splitlines() if "/" not in line) <= 80


@pytest.mark.parametrize(
    ("answer", "words"),
    [("", "died with exit code -6"), (subprocess.TimeoutExpired("probe", 1), "no answer within")],
)
def test_a_probe_that_does_not_answer(
    answer: Any, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(monkeypatch, answer)
    assert leave("--json") == 0
    found = {row["part"]: row for row in json.loads(capsys.readouterr().out)}
    assert found["torch"]["state"] == "broken"
    assert words in found["torch"]["found"]


def test_a_file_that_is_no_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(monkeypatch, json.dumps(BARE))
    path = tmp_path / "notes.txt"
    path.write_text("no database " * 100)
    assert leave("--db", str(path), "--json") == 1
    found = {row["part"]: row for row in json.loads(capsys.readouterr().out)}
    assert found["database"]["state"] == "broken"


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["table", "json"])
@pytest.mark.parametrize(
    ("make", "code", "state"),
    [
        (lambda path: None, 0, "none yet"),
        (lambda path: Store.open(path).close(), 0, "ok"),
        (lambda path: path.write_text("no database " * 100), 1, "broken"),
        (lambda path: path.mkdir(), 1, "broken"),
        (lambda path: spoil(path), 1, "broken"),
    ],
    ids=["missing", "whole", "text", "folder", "a page"],
)
def test_only_a_database_that_cannot_be_read_is_a_failure(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], object],
    code: int,
    state: str,
    form: tuple[str, ...],
) -> None:
    said(monkeypatch, json.dumps(BARE))
    path = tmp_path / "named.db"
    make(path)
    assert leave("--db", str(path), *form) == code
    answer = capsys.readouterr()
    assert state in answer.out
    assert answer.err == ""


def test_a_name_that_the_system_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(monkeypatch, json.dumps(BARE))
    assert leave("--db", str(tmp_path / ("x" * 300)), "--json") == 1
    found = {row["part"]: row for row in json.loads(capsys.readouterr().out)}
    assert found["database"]["state"] == "broken"
    assert "too long" in found["database"]["cost"]


@pytest.mark.parametrize("option", ["--acf", "--ptxas"])
def test_a_path_where_nothing_is(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave(option, "nowhere") == 2
    said = capsys.readouterr()
    assert said.err.startswith("emmy: there is nothing at nowhere: ")
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_an_interpreter_that_cant_be_started(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said(monkeypatch, PermissionError(13, "Permission denied"))
    assert leave("--db", str(recorded)) == 0
    assert "can't be started (Permission denied)" in capsys.readouterr().out
