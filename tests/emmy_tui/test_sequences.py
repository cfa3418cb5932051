"""A terminal's replies among keys: wherever they come, however they are split, the keys are those that were pressed."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.events import Key, MouseEvent, Paste
from textual.message import Message

from emmy_tui.driver import Keyboard
from emmy_tui.sequences import LONGEST, PASTE_S, STRING_S, WHOLE_S
from tests.emmy_tui.pseudo_terminal import on_terminal

ST = "\x1b\\"
REPLIES = (
    f"\x1bP>|XTerm(370){ST}",
    "\x1b]11;rgb:1e1e/2e2e/3e3e\x07",
    f"\x1b]11;rgb:1e1e/2e2e/3e3e{ST}",
    f"\x1b]4;1;rgb:ffff/0000/0000{ST}",
    f"\x1b]52;c;cXVpdA=={ST}",
    f"\x1b]lXjq{ST}",
    f"\x1bP1;2q{ST}",
    f"\x1bP1$r0m{ST}",
    f"\x1bP1+r544e=787465726d{ST}",
    f"\x1bP!|7E7E0000{ST}",
    f"\x1b_Gi=31;OK{ST}",
    f"\x1b_anything X q{ST}",
    f"\x1b^private q{ST}",
    f"\x1bXq X{ST}",
    "\x90>|8 bits q\x9c",
    "\x9d11;rgb:q\x9c",
    "\x1b[?62;22c",
    "\x1b[?1;2c",
    "\x1b[>41;370;0c",
    "\x1b[0n",
    "\x1b[?15n",
    "\x1b[5;10R",
    "\x1b[12;40R",
    "\x1b[1;80R",
    "\x1b[?1;5R",
    "\x1b[?1u",
    "\x1b[?997;1n",
    "\x1b[8;24;80t",
    "\x1b[4;1$y",
    "\x1b[2;1;1;120;120;1;0x",
    "\x1b[?2;0;800;600S",
)
KEYS = {
    "q": "q",
    "X": "X",
    "R": "R",
    "]": "right_square_bracket",
    "[": "left_square_bracket",
    "\\": "backslash",
    "_": "underscore",
    "é": "é",
    "\r": "enter",
    "\x03": "ctrl+c",
    "\x07": "ctrl+g",
    "\x7f": "backspace",
    "\x1b[A": "up",
    "\x1bOB": "down",
    "\x1b[[A": "f1",
    "\x1b[1;5C": "ctrl+right",
    "\x1bOR": "f3",
    "\x1b[1;2R": "shift+f3",
    "\x1b[1;5R": "ctrl+f3",
    "\x1b[13~": "f3",
    "\x1b[106;5u": "ctrl+j",
    "\x1b[3~": "delete",
    "\x1b[Z": "shift+tab",
}


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def keys(messages: list[Message]) -> list[str]:
    return [one.key for one in messages if isinstance(one, Key)]


def split(data: bytes, places: list[int]) -> list[bytes]:
    bounds = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(bounds)]


@settings(max_examples=300)
@given(
    st.lists(st.one_of(st.sampled_from(REPLIES), st.sampled_from(list(KEYS)))),
    st.lists(st.integers(0, 1000)),
    st.floats(0.0, STRING_S / 8),
)
def test_among_replies_the_keys_are_exactly_those_that_were_pressed(
    parts: list[str], places: list[int], pause: float
) -> None:
    clock = Clock()
    keyboard = Keyboard(clock=clock)
    got: list[str] = []
    for data in split("".join(parts).encode(), places):
        got += keys([*keyboard.read(data), *keyboard.waited()])
        clock.now += pause
    assert got == [KEYS[part] for part in parts if part in KEYS]


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_that_breaks_off_presses_nothing_that_a_reply_begins_with(reply: str) -> None:
    clock = Clock()
    keyboard = Keyboard(clock=clock)
    got = keys(keyboard.read(reply.encode()[:8]))
    clock.now += WHOLE_S
    got += keys(keyboard.waited())
    if not reply.startswith(("\x1b_any", "\x1b^", "\x1bX", "\x1b]l")):
        assert got == []
    assert keys(keyboard.read(b"j")) == ["j"]


@pytest.mark.parametrize(
    ("typed", "pressed"),
    [
        ("\x1b", ["escape"]),
        ("\x1b]", ["escape", "right_square_bracket"]),
        ("\x1b[", ["escape", "left_square_bracket"]),
        ("\x1b[p", ["escape", "left_square_bracket", "p"]),
        ("\x1b]u", ["escape", "right_square_bracket", "u"]),
        ("\x1b]2", ["escape", "right_square_bracket", "2"]),
        ("\x1bX\r", ["escape", "X", "enter"]),
        ("\x1bP\x1b", ["escape", "P", "escape"]),
        ("\x1bO", ["escape", "O"]),
        ("\x1bOz", ["escape", "O", "z"]),
        ("\x1b_\x1b[A", ["escape", "underscore", "up"]),
    ],
)
def test_what_a_person_types_after_escape_is_keys(typed: str, pressed: list[str]) -> None:
    clock = Clock()
    keyboard = Keyboard(clock=clock)
    got = keys([*keyboard.read(typed.encode()), *keyboard.waited()])
    clock.now += STRING_S
    assert keys(keyboard.waited()) == pressed[len(got) :]
    assert got == pressed[: len(got)]


@pytest.mark.parametrize(
    ("begun", "rest"), [("\x1bP>|XTerm(3", "70)\x1b\\"), ("\x1b]11;rgb:", "0/0/0\x07"), ("\x1b[?62;", "22c")]
)
def test_a_reply_may_pause_in_the_middle(begun: str, rest: str) -> None:
    clock = Clock()
    keyboard = Keyboard(clock=clock)
    got = keys([*keyboard.read(begun.encode()), *keyboard.waited()])
    clock.now += STRING_S * 1.2
    got += keys([*keyboard.waited(), *keyboard.read(rest.encode()), *keyboard.waited()])
    assert got == []
    assert keys(keyboard.read(b"j")) == ["j"]


def test_alt_that_a_person_bound_is_kept_before_what_begins_a_string() -> None:
    clock = Clock()
    keyboard = Keyboard(lambda character: character == "X", clock)
    keyboard.read(b"\x1bX")
    clock.now += STRING_S
    assert keys(keyboard.waited()) == ["alt+shift+x"]


def test_a_string_without_an_end_is_given_up_by_its_length_and_by_its_time() -> None:
    clock = Clock()
    keyboard = Keyboard(clock=clock)
    assert keys(keyboard.read(b"\x1b]52;c;" + b"q" * (LONGEST + 1) + b"j"))[-1] == "j"
    keyboard.read(b"\x1b]11;rgb:")
    got: list[str] = []
    for _ in range(20):
        clock.now += STRING_S / 2
        got += keys([*keyboard.read(b"j"), *keyboard.waited()])
    assert len(got) >= 10
    keyboard.read(b"\x1b]11;rgb:")
    assert keys(keyboard.read(b"\x03")) == ["ctrl+c"]


def test_mouse_and_mode_reports_pass() -> None:
    keyboard = Keyboard()
    assert any(isinstance(one, MouseEvent) for one in keyboard.read(b"\x1b[<0;3;4M"))
    assert [type(one).__name__ for one in keyboard.read(b"\x1b[?2026;2$y")] == ["TerminalSupportsSynchronizedOutput"]


@given(st.text(), st.lists(st.integers(0, 1000)))
def test_a_paste_is_one_text_wherever_it_is_split(text: str, places: list[int]) -> None:
    text = "".join(one for one in text if not "\ud800" <= one <= "\udfff").replace("\x1b", "").replace("\0", "")
    keyboard = Keyboard(clock=Clock())
    got: list[Message] = []
    for data in split(f"\x1b[200~{text}\x1b[201~q".encode(), places):
        if data == b"\x03":
            return
        got += keyboard.read(data)
    assert [one.text for one in got if isinstance(one, Paste)] == ([text] if text else [])
    assert keys(got) == ["q"]


def test_a_paste_whose_end_is_lost_takes_no_key() -> None:
    clock = Clock()
    keyboard = Keyboard(clock=clock)
    keyboard.read(b"\x1b[200~abc")
    assert keys(keyboard.waited()) == []
    clock.now += PASTE_S
    (pasted,) = keyboard.waited()
    assert isinstance(pasted, Paste)
    assert pasted.text == "abc"
    assert keys(keyboard.read(b"q")) == ["q"]
    keyboard.read(b"\x1b[200~abc")
    assert keys(keyboard.read(b"\x03")) == ["ctrl+c"]


def test_replies_to_a_running_program_press_nothing(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "idle") as terminal:
        terminal.read_until(b"Search tree")
        for reply in REPLIES:
            os.write(terminal.master, reply.encode())
        terminal.output = b""
        os.write(terminal.master, b"?")
        terminal.read_until(b"Keys of emmy-tui")
        os.write(terminal.master, b"qq")
        assert terminal.ended() == 0
        assert terminal.restored()
