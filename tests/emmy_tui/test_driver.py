"""What a terminal sends: bytes that are no text, keys after escape, old mouse reports; and what ends the input."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import constants
from textual.events import Key, Paste
from textual.message import Message

from emmy_tui.driver import Keyboard, TerminalDriver
from emmy_tui.look import Look
from tests.emmy_tui.looking import application, running
from tests.emmy_tui.measured import fill, over, press
from tests.emmy_tui.pseudo_terminal import ALTERNATE_OFF, ALTERNATE_ON, on_terminal, program


def said(messages: list[Message]) -> list[str]:
    """Keys by their names, and pasted text."""
    return [one.key if isinstance(one, Key) else one.text if isinstance(one, Paste) else "" for one in messages]


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"\xe9A", ["A"]),
        (b"\xc3(", ["left_parenthesis"]),
        (b"\xff\xfe\x80j", ["j"]),
        ("é".encode(), ["é"]),
        (b"\x1b[200~a\xffb\x1b[201~q", ["ab", "q"]),
        (b"\x1br", ["escape", "r"]),
        (b"\x1b\x1br\r", ["escape", "escape", "r", "enter"]),
        (b"\x1b1", ["escape", "1"]),
        (b"\x1b\xe9j", ["escape", "j"]),
        (b"\x1b[A\x1bOB", ["up", "down"]),
        (b"\x1bb", ["ctrl+left"]),
        (b"\x1b[M \xc8\xb0j", ["j"]),
        (b"\x1b[M\xff\xff\xffj", ["j"]),
        (b"\x1b[99999999999u", []),
    ],
)
@pytest.mark.parametrize("apiece", [False, True])
def test_what_bytes_are_as_keys(data: bytes, keys: list[str], apiece: bool, caplog: pytest.LogCaptureFixture) -> None:
    keyboard = Keyboard(lambda character: character == "b")
    read = [bytes((byte,)) for byte in data] if apiece else [data]
    with caplog.at_level(logging.CRITICAL):
        got = [message for piece in read for message in keyboard.read(piece)]
    if data.startswith(b"\x1bb"):
        time.sleep(constants.ESCAPE_DELAY * 1.1)
        got += keyboard.waited()
    assert said(got) == keys
    assert said(keyboard.read(b"x")) == ["x"]


@given(st.lists(st.one_of(st.binary(max_size=12), st.sampled_from([b"\x1b", b"\x1b[", b"\x1b[M", b"u", b";9"]))))
def test_no_bytes_break_the_keyboard(pieces: list[bytes]) -> None:
    keyboard = Keyboard()
    logging.getLogger("emmy_tui").disabled = True
    try:
        for piece in pieces:
            keyboard.read(piece)
            keyboard.waited()
    finally:
        logging.getLogger("emmy_tui").disabled = False


def test_a_mouse_report_that_never_comes_whole_takes_no_key_with_it() -> None:
    keyboard = Keyboard()
    keyboard.read(b"\x1b[M\xff")
    time.sleep(constants.ESCAPE_DELAY * 1.1)
    keyboard.waited()
    assert said(keyboard.read(b"jjj")) == ["j", "j", "j"]


async def test_alt_is_kept_where_a_line_is_typed_and_where_a_person_bound_it(tmp_path: Path) -> None:
    app = over(fill(tmp_path / "tune.db", rows=3))
    async with running(app) as pilot:
        assert not app.keeps_alt("b")
        await press(app, pilot, "2", "slash")
        assert app.keeps_alt("b")
        assert not app.keeps_alt("r")
    bound = application(None, Look(keys={"freeze": ("alt+f",)}))
    async with running(bound):
        assert bound.keeps_alt("f")


@pytest.mark.parametrize(
    "sent", [b"\xe9v", b"\xc3(", b"\x1b[200~a\xffb\x1b[201~", b"\x1b[M\xff\xfe\x80", b"\xff" * 5000]
)
def test_bytes_that_are_no_text_leave_the_screen_up(sent: bytes, tmp_path: Path) -> None:
    with on_terminal(tmp_path, "idle") as terminal:
        terminal.read_until(b"Search tree")
        os.write(terminal.master, sent)
        terminal.output = b""
        os.write(terminal.master, b"?")
        terminal.read_until(b"Keys of emmy-tui")
        os.write(terminal.master, b"\x1bq")
        assert terminal.ended() == 0
        assert terminal.restored()
    assert "Traceback" not in (tmp_path / "log.txt").read_text()


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


@pytest.mark.parametrize("stopped", ["the program", "the first process"])
def test_after_a_stop_from_outside_the_screen_is_painted_whole(stopped: str, tmp_path: Path) -> None:
    with on_terminal(tmp_path, "idle") as terminal:
        terminal.read_until(b"Search tree")
        drawing = program(tmp_path)
        before = threads(drawing)
        os.kill(drawing if stopped == "the program" else terminal.pid, signal.SIGSTOP)
        assert os.WIFSTOPPED(os.waitpid(terminal.pid, os.WUNTRACED)[1])
        if stopped == "the program":  # a shell has the terminal as it was
            terminal.read_until(ALTERNATE_OFF)
            assert b"\x1b[?1003l" in terminal.output
            assert terminal.restored()
        terminal.output = b""
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.read_until(ALTERNATE_OFF)
        terminal.output = terminal.output[terminal.output.index(ALTERNATE_OFF) :]
        terminal.read_until(b"Search tree")
        assert ALTERNATE_ON in terminal.output
        assert threads(drawing) == before
        os.write(terminal.master, b"q")
        assert terminal.ended() == 0
        assert terminal.restored()


def test_what_ends_the_input_ends_the_program_with_its_cause(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "keys") as terminal:
        terminal.read_until(b"Search tree")
        os.write(terminal.master, b"j")
        assert terminal.ended() == 1
        assert terminal.restored()
        after = terminal.output[terminal.output.rfind(ALTERNATE_OFF) :]
        assert b"the keys can't be read: RuntimeError: the keys broke on purpose" in after
        assert b"Traceback" not in terminal.output
    assert "Traceback" in (tmp_path / "log.txt").read_text()


def test_a_signal_of_a_stop_leaves_the_terminal_to_the_loop() -> None:
    """It may come while the lock of what writes there is held, which nobody gives back then."""

    class Loop:
        def __init__(self) -> None:
            self.asked: list[Callable[[], object]] = []

        def call_soon_threadsafe(self, act: Callable[[], object]) -> None:
            self.asked.append(act)

    driver, loop = TerminalDriver.__new__(TerminalDriver), Loop()
    vars(driver)["_loop"] = loop
    driver._sigtstp_application()
    driver._sigcont_application()
    assert len(loop.asked) == 2


def test_a_lone_escape_is_looked_for_more_often_than_nothing() -> None:
    keyboard = Keyboard()
    idle = keyboard.look_s
    keyboard.read(b"\x1b")
    assert keyboard.look_s < idle
    keyboard.read(b"[A")
    assert keyboard.look_s == idle
