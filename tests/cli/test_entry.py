"""Ctrl-C at any moment of loading: no traceback, and the exit code of an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.entry import Loading

INTERRUPTED_AT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            os.kill(os.getpid(), signal.SIGINT)

moment = sys.argv.pop(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
sys.meta_path.insert(0, Finder())
from engine.cli import main
main()
print("went on")
"""


@pytest.mark.parametrize(
    "moment",
    [
        "engine.cli.application",
        "typer",
        "typer.core",
        "logging",
        "platformdirs",
        "engine.cli.tune",
        "engine.cli.options",
        "engine.cli.tuning",
        "engine.session",
        "engine.store",
        "engine.capture",
        "numpy",
    ],
)
def test_ctrl_c_while_loading_is_quiet(moment: str, recorded: Path) -> None:
    arguments = ["tune", "--device", "replay", "--db", str(recorded)]
    command = [sys.executable, "-c", INTERRUPTED_AT, moment, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_loading_gives_the_handler_back() -> None:
    former = signal.getsignal(signal.SIGINT)
    with Loading():
        assert signal.getsignal(signal.SIGINT) is not former
    assert signal.getsignal(signal.SIGINT) is former


@pytest.mark.parametrize("chosen", [signal.SIG_IGN, lambda number, frame: None], ids=["ignored", "handled"])
def test_a_handler_of_others_stays(chosen: object) -> None:
    former = signal.signal(signal.SIGINT, chosen)
    try:
        with Loading():
            assert signal.getsignal(signal.SIGINT) is chosen
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, former)
