"""What surrounds the screen and is wrong: the size that the environment says."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from pathlib import Path

import pytest

from tests.emmy_tui.pseudo_terminal import on_terminal


@pytest.mark.parametrize("said", ["20", "0", "-3", "many", "100000"])
def test_the_size_is_the_terminals_and_not_what_the_environment_says(said: str, tmp_path: Path) -> None:
    with on_terminal(tmp_path, "idle", COLUMNS=said, LINES=said) as terminal:
        terminal.read_until(b"Search tree")
        os.write(terminal.master, b"q")
        assert terminal.ended() == 0
        assert terminal.restored()


def test_a_terminal_without_a_size_has_one_that_can_be_drawn(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "idle", COLUMNS="100000", LINES="100000") as terminal:
        fcntl.ioctl(terminal.master, termios.TIOCSWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
        terminal.read_until(b"Search tree")
        os.write(terminal.master, b"q")
        assert terminal.ended() == 0
