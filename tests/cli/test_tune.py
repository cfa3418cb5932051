"""`emmy tune` over a scripted session: what it asks for, what it prints, how it leaves."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from engine.cli import database as database_module
from engine.cli import tuning
from engine.cli.application import main
from engine.events import Event

CODE = "torch.matmul(torch.randn(8, 8), torch.randn(8, 8))"


class Sessions:
    """Stands where TuningSession does: hands out one scripted session and keeps what was asked for."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.asked: dict[str, Any] = {}

    def tune(self, code: str, **options: Any) -> Any:
        self.asked = {"code": code, **options}
        return self.session

    def replay(self, database: Path, **options: Any) -> Any:
        self.asked = {"database": database, **options}
        return self.session


@pytest.fixture
def sessions(events: list[Event], scripted: type, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    stand_in = Sessions(scripted(events))
    monkeypatch.setattr(tuning, "TuningSession", stand_in)
    return stand_in


def leave(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["tune", *arguments])
    return int(left.value.code or 0)


def test_a_run(sessions: Sessions, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "mine.db"
    options = ("--db", str(database), "--patience", "7", "--seed", "3", "--device", "cuda:1", "--jobs", "2", "-v")
    assert leave("--code", CODE, *options) == 0
    assert sessions.session.asked == ["start", "close"]
    asked = sessions.asked
    assert (asked["code"], asked["database"], asked["device"]) == (CODE, database, "cuda:1")
    settings = asked["settings"]
    assert (settings.patience, settings.seed, settings.jobs, settings.prior) == (7, 3, 2, "auto")
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.count("BLOCK_M=64") == 6  # five steps, and the end block
    assert f"next       emmy-tui {database}" in said.out


def test_a_model_is_asked_for_by_one_line(sessions: Sessions, tmp_path: Path) -> None:
    database = str(tmp_path / "mine.db")
    assert (
        leave("Qwen/Qwen3-0.6B", "--layer", "3", "--seq-len", "32", "--batch", "2", "--dtype", "fp16", "--db", database)
        == 0
    )
    assert sessions.asked["code"] == "Qwen/Qwen3-0.6B --layer 3 --dtype float16 --seq-len 32 --batch 2"
    assert leave("gpt2", "--db", database) == 0
    assert sessions.asked["code"] == "gpt2 --dtype bfloat16 --seq-len 512 --batch 1"
    assert leave("gpt2", "--device", "replay", "--db", database) == 0
    assert sessions.asked["target"] == "gpt2 --dtype bfloat16 --seq-len 512 --batch 1"


def test_json_is_the_last_line(sessions: Sessions, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--code", CODE, "--json") == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["measured"], found["cached"], found["failed"], found["sum_us"]) == (4, 1, 1, 13.1)


def test_quiet_with_json_is_that_line_alone(sessions: Sessions, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--code", CODE, "-q", "--json") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_quiet_prints_nothing(sessions: Sessions, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("--code", CODE, "-q") == 0
    assert capsys.readouterr() == ("", "")


def test_replay_of_a_database(sessions: Sessions, tmp_path: Path) -> None:
    assert leave("--device", "replay", "--db", str(tmp_path / "x.db")) == 0
    assert (sessions.asked["database"], sessions.asked["pace"], sessions.asked["target"]) == (
        tmp_path / "x.db",
        0.0,
        None,
    )


@pytest.mark.parametrize("pace", ["0", "0.5", "3600"])
@pytest.mark.parametrize("prior", ["auto", "latest", "cold"])
def test_what_a_replay_takes(sessions: Sessions, tmp_path: Path, pace: str, prior: str) -> None:
    options = ("--db", str(tmp_path / "x.db"), "--pace", pace, "--prior", prior, "--seed", "3", "--patience", "7")
    assert leave("--device", "replay", *options) == 0
    assert sessions.asked["pace"] == float(pace)
    assert sessions.asked["settings"].prior == prior


def test_the_demo_may_be_called_a_replay(sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "demo_database", lambda: tmp_path / "copy.db")
    assert leave("--demo", "--device", "replay") == 0


def test_the_device_is_the_first_gpu(sessions: Sessions) -> None:
    assert leave("--code", CODE, "--prior", "r1") == 0
    assert (sessions.asked["device"], sessions.asked["settings"].prior) == ("cuda:0", "r1")


@pytest.mark.parametrize(
    ("options", "device"),
    [
        (("--gpus", "1"), "cuda:0"),
        (("--gpus", "3"), "cuda:0,cuda:1,cuda:2"),
        (("--devices", "0,2"), "cuda:0,cuda:2"),
        (("--devices", " 03 "), "cuda:3"),
        (("--ray", "10.0.0.1:6379"), "ray:10.0.0.1:6379"),
        (("--ray", "auto"), "ray:auto"),
    ],
)
def test_several_gpus(sessions: Sessions, options: tuple[str, ...], device: str) -> None:
    assert leave("--code", CODE, *options) == 0
    assert sessions.asked["device"] == device


def test_code_narrows_a_replay(sessions: Sessions) -> None:
    assert leave("--device", "replay", "--code", "matmul", "--pace", "0.5") == 0
    assert (sessions.asked["target"], sessions.asked["pace"]) == ("matmul", 0.5)


def test_demo_replays_the_copy(sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "demo_database", lambda: tmp_path / "copy.db")
    assert leave("--demo") == 0
    assert sessions.asked["database"] == tmp_path / "copy.db"
    assert sessions.asked["pace"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to tune"),
        (["--device", "tpu"], "is no device to tune on"),
        (["gpt2", "--code", "f()"], "two programs"),
        (["--code", "f()", "--gpus", "2", "--devices", "0,1"], "give one of them"),
        (["--code", "f()", "--gpus", "2", "--device", "cuda:0"], "give one of them"),
        (["--code", "f()", "--devices", "0;1"], "such as 0,2, not '0;1'"),
        (["--code", "f()", "--devices", ""], "such as 0,2, not ''"),
        (["--demo", "--gpus", "2"], "replays a recording"),
        (["--demo", "--ray", "auto"], "replays a recording"),
        (["--code", "f()", "--ray", "auto", "--gpus", "2"], "give one of them"),
        (["--demo", "--cold-l2"], "a replay measures nothing"),
        (["--code", "f()", "--layer", "0"], "name one"),
        (["gpt2", "--dtype", "int8"], "bfloat16, float16, float32"),
        (["no/such/model"], "no model's id"),
        (["missing.py:f"], "missing.py can't be read"),
        (["--demo", "--db", "x.db"], "brings its own database"),
        (["--code", "f()", "--pace", "1"], "--pace slows a replay down"),
        (["--demo", "-v", "-q"], "contradict each other"),
        *((["--demo", "--pace", pace], "from 0 to 3600") for pace in ("inf", "-inf", "nan", "-1", "1e9", "3600.1")),
        (["--demo", "--device", "banana"], "--device banana measures"),
        (["--device", "cuda:9", "--demo"], "--device cuda:9 measures"),
        (["--demo", "--prior", "banana"], "--prior 'banana' steers no replay"),
        (["--demo", "--prior", ""], "--prior '' steers no replay"),
        (["--device", "replay", "--db", "x.db", "--prior", "r1"], "--prior 'r1' steers no replay"),
        (["--demo", "--jobs", "2"], "a replay compiles nothing"),
        (["--code", "f()", "--patience", "0"], "patience must be at least 1, not 0"),
        (["--code", "f()", "--jobs", "0"], "jobs must be at least 1, not 0"),
    ],
)
def test_bad_input(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave(*arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("emmy: ")
    assert words in said.err
    assert said.err.count("\n") == 1


def test_input_that_the_engine_refuses(sessions: Sessions, scripted: type, capsys: pytest.CaptureFixture[str]) -> None:
    sessions.session = scripted([], failure="the last statement is no call; end the text with one")
    assert leave("--code", "x = 1", "--json") == 2
    assert capsys.readouterr() == ("", "emmy: the last statement is no call; end the text with one\n")


def test_a_run_that_fails(
    sessions: Sessions, scripted: type, events: list[Event], capsys: pytest.CaptureFixture[str]
) -> None:
    sessions.session = scripted(events[:8], failure="the GPU is gone; look at `emmy doctor`")
    assert leave("--code", CODE, "--json") == 1
    said = capsys.readouterr()
    assert said.err == "emmy: the GPU is gone; look at `emmy doctor`\n"
    found = json.loads(said.out.splitlines()[-1])
    assert (found["failure"], found["measured"]) == ("the GPU is gone; look at `emmy doctor`", 3)


def test_ctrl_c_sums_up_and_leaves_with_130(sessions: Sessions, capsys: pytest.CaptureFixture[str]) -> None:
    sessions.session.on_wait = lambda count: os.kill(os.getpid(), signal.SIGINT) if count == 8 else None
    assert leave("--code", CODE) == 130
    assert "stop" in sessions.session.asked
    said = capsys.readouterr()
    assert "measured 3, cached 1, failed 1" in said.out
    assert said.err.count("\n") == 1
