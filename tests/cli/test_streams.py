"""Standard streams that are full, closed or gone, for every command that prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.errors import log_path

CALL = "from engine.cli import main; main()"
PRINTING = [
    ["--version"],
    ["--help"],
    ["tune", "--help"],
    ["eval", "variants", "--db", "DB"],
    ["eval", "variants", "--db", "DB", "--json"],
    ["eval", "failures", "--db", "DB"],
    ["tune", "--device", "replay", "--db", "DB"],
    ["tune", "--device", "replay", "--db", "DB", "-v"],
    ["tune", "--device", "replay", "--db", "DB", "-q", "--json"],
]


def emmy(
    arguments: list[str], database: Path, redirection: str, unbuffered: str = ""
) -> subprocess.CompletedProcess[str]:
    """The command under a shell that redirects it; stdout and stderr are what reached the parent."""
    typed = [str(database) if argument == "DB" else argument for argument in arguments]
    command = ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-c", CALL, *typed]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is needed")
@pytest.mark.parametrize(
    ("arguments", "unbuffered"), [*((arguments, "") for arguments in PRINTING), (PRINTING[0], "1"), (PRINTING[-1], "1")]
)
def test_a_full_device_is_said_in_one_line(recorded: Path, arguments: list[str], unbuffered: str) -> None:
    ended = emmy(arguments, recorded, ">/dev/full", unbuffered)
    assert ended.returncode == 1
    assert ended.stderr == (
        "emmy: stdout can't be written (No space left on device): send it to another file or device\n"
    )
    assert not log_path().exists()


@pytest.mark.parametrize("arguments", [["eval", "variants", "--db", "DB"], ["--version"]], ids=" ".join)
def test_a_stdout_that_only_reads_is_said_in_one_line(recorded: Path, arguments: list[str]) -> None:
    ended = emmy(arguments, recorded, "1</dev/null")
    assert ended.returncode == 1
    assert ended.stderr.startswith("emmy: stdout can't be written (")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_closed_stdout_is_said_in_one_line(recorded: Path, arguments: list[str]) -> None:
    before = recorded.read_bytes()
    ended = emmy(arguments, recorded, ">&-")
    assert ended.returncode == 1
    assert ended.stderr.startswith("emmy: stdout can't be written (")
    assert ended.stderr.count("\n") == 1
    assert recorded.read_bytes() == before


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", ">&- 2>&- <&-", ">/dev/full 2>/dev/full"])
def test_a_stderr_that_takes_nothing_changes_no_exit_code(recorded: Path, redirection: str) -> None:
    refused = emmy(["eval", "variants", "--db", "DB", "--kernel", "conv"], recorded, redirection)
    assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", "")
