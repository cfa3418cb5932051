"""The command as a process: its version, its help, what it imports, how it leaves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine import __version__
from engine.cli import application as application_module
from engine.cli.application import application, main
from engine.cli.errors import log_path
from engine.cli.usage import usage_line

CALL = "from engine.cli import main; main()"


def emmy(*arguments: str, flags: tuple[str, ...] = (), **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *flags, "-c", CALL, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def imported(*arguments: str) -> set[str]:
    """Top names of every module that the command loads."""
    said = emmy(*arguments, flags=("-X", "importtime")).stderr
    return {line.rpartition("|")[2].strip() for line in said.splitlines() if line.startswith("import time:")}


def leave(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return int(left.value.code or 0)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert leave(["--version"]) == 0
    assert capsys.readouterr().out == f"emmy {__version__}\n"


def test_version_loads_no_room() -> None:
    loaded = imported("--version")
    assert "engine.cli.application" in loaded
    assert {name for name in loaded if name.startswith(("engine.store", "engine.session", "numpy"))} == set()


@pytest.mark.parametrize(
    "arguments", [["tune", "--help"], ["eval", "variants", "--help"], ["doctor", "-h"]], ids=" ".join
)
def test_reading_loads_no_heavy_library(arguments: list[str]) -> None:
    loaded = {name.partition(".")[0] for name in imported(*arguments)}
    assert "engine" in loaded
    assert loaded & {"torch", "triton", "sklearn", "scipy", "textual"} == set()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], ["tune", "--help"], ["eval", "--help"], ["eval", "failures", "-h"]], ids=" ".join
)
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert leave(arguments) == 0
    assert "Usage: emmy" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["bake"], ["tune", "--heat", "3"], ["eval", "nothing"], ["tune", "--patience", "many"]], ids=" ".join
)
def test_usage_errors_leave_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert leave(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"emmy: .*`emmy( \w+)* --help`\n", said.err)


@pytest.mark.parametrize(
    ("arguments", "words", "command"),
    [
        (["bake"], "no such command 'bake'", "emmy"),
        (["tun"], "Did you mean 'tune'", "emmy"),
        (["eval", "nothing"], "no such command 'nothing'", "emmy eval"),
        (["--heat"], "--heat", "emmy"),
        (["tune", "--heat", "3"], "--heat", "emmy tune"),
        (["tune", "--patience", "x1"], "'x1'", "emmy tune"),
        (["tune", "--patience=x1"], "'x1'", "emmy tune"),
        (["tune", "--pace", "soon"], "'soon'", "emmy tune"),
        (["tune", "--patience"], "--patience", "emmy tune"),
        (["tune", "--seed", str(10**30)], str(10**30), "emmy tune"),
        (["tune", "one", "two"], "two", "emmy tune"),
        (["import"], "FILE", "emmy import"),
        (["doctor", "extra"], "extra", "emmy doctor"),
        (["eval", "variants", "--top", "0"], "'0'", "emmy eval variants"),
        (["eval", "variants", "--top", str(10**30)], str(10**30), "emmy eval variants"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
def test_a_usage_error_is_one_line_with_the_way_out(
    arguments: list[str], words: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("emmy: ")
    assert said.err.endswith(f"ee `{command} --help`\n")
    assert said.err.count("\n") == 1
    assert words in said.err


@pytest.mark.parametrize("arguments", [[], ["eval"]], ids=["emmy", "eval"])
def test_a_command_alone_prints_its_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert leave(arguments) in (0, 2)
    said = capsys.readouterr()
    assert "Usage: emmy" in said.out
    assert said.err == ""


def raising(error: BaseException) -> object:
    class Command:
        def __call__(self, **_: object) -> None:
            raise error

    return lambda arguments: Command()


def test_an_unexpected_error_leaves_with_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(application_module, "application", raising(RuntimeError("a bug")))
    assert leave(["doctor"]) == 1
    assert capsys.readouterr().err == f"emmy: unexpected RuntimeError: a bug; the traceback is in {log_path()}\n"


def test_ctrl_c_before_a_run_leaves_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application_module, "application", raising(KeyboardInterrupt()))
    assert leave(["doctor"]) == 130


def test_only_the_typed_command_is_registered() -> None:
    assert [command.name for command in application(["tune", "-v"]).registered_commands] == ["tune"]
    assert {command.name for command in application([]).registered_commands} >= {"tune", "doctor", "import"}


@pytest.mark.parametrize("arguments", [["--help"], ["tune", "--help"], ["eval", "variants", "-h"]])
def test_a_reader_that_leaves_the_help_is_no_error(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-c", CALL, *arguments], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_path_that_may_not_be_read_is_told_what_to_do() -> None:
    class Unreadable(Exception):
        param, ctx = None, None

        def format_message(self) -> str:
            return "Invalid value for '--db': Path 'no.db' is not readable."

    line = usage_line(Unreadable(), ["pins", "--db", "no.db"], ["pins"])
    assert line.endswith("Path 'no.db' is not readable: make it readable (chmod u+r), or name another")


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["table", "json"])
def test_a_reader_that_leaves_is_no_error(recorded: Path, form: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", CALL, "eval", "variants", "--db", str(recorded), *form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait() in (0, 1)
