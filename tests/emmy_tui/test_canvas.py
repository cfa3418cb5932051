"""Whatever Textual paints, and whenever the terminal takes something: in the end it shows what was painted."""

from __future__ import annotations

import io
import random

import pytest
from textual._ansi_sequences import SYNC_END, SYNC_START

from emmy_tui.canvas import FRAME, Canvas, Painting
from tests.emmy_tui.seen import Screen

SIZE = 30, 8
STYLES = ("", "1", "38;2;9;9;9", "1;38;2;9;9;9;48;2;0;0;40", "48;5;17", "31;44", "2;4;97", "7;35;107", "9")
PIECES = ("a", "word", "┌──┐", "⠁⣿", "     ", "e\u0301", "x y", "│  ▸ BLOCK=64 │")
WIDE = ("漢字" * 7 + "::", "\U0001f642 wide ones                  ", "e\u0301" * 30, "." * 30)
WIDE_ROWS = 2
"""Lines that are painted whole: what a terminal shows of half a wide character is its own affair."""
FOREIGN = ("\x07", "\x1b[?1000h", "\x1b]52;c;YQ==\x07", "\x1b[?2026$p", "\x1b[2J", "\x1b[?1049h")


def frame(chance: random.Random) -> str:
    """A few regions with text, as Textual writes them."""
    parts = []
    for _ in range(chance.randint(1, 4)):
        if chance.random() < 0.3:
            parts.append(f"\x1b[{chance.randint(1, WIDE_ROWS)};1H\x1b[{chance.choice(STYLES) or 0}m")
            parts.append(f"{chance.choice(WIDE)}\x1b[0m")
        parts.append(f"\x1b[{chance.randint(WIDE_ROWS + 1, SIZE[1])};{chance.randint(1, SIZE[0])}H")
        for _ in range(chance.randint(1, 3)):
            style, piece = chance.choice(STYLES), chance.choice(PIECES)
            parts.append(f"\x1b[{style}m{piece}\x1b[0m" if style else piece)
        parts.append(chance.choice(("", "\n")))
    return "".join(parts)


def full_frame(chance: random.Random) -> str:
    """The whole screen."""
    rows = ("".join(chance.choice(".:x ") for _ in range(SIZE[0])) for _ in range(SIZE[1]))
    return "".join(f"\x1b[{y};1H\x1b[{chance.choice(STYLES) or 0}m{row}\x1b[0m" for y, row in enumerate(rows, 1))


@pytest.mark.parametrize("seed", range(40))
def test_the_terminal_shows_what_was_painted_however_often_it_takes_something(seed: int) -> None:
    chance = random.Random(seed)
    canvas, plain, spared = Canvas(), Screen(SIZE), Screen(SIZE)
    written = io.StringIO()
    painting = Painting(written, canvas)
    waiting: list[str] = []
    for _ in range(60):
        painted = full_frame(chance) if chance.random() < 0.05 else frame(chance)
        plain.show(painted.encode())
        foreign = chance.choice(FOREIGN[:-2]) if chance.random() < 0.1 else SYNC_START
        for data in (foreign, painted):
            handed = canvas.hand_over(data, SIZE)
            waiting += [handed] if handed is not None else []
        if chance.random() < 0.5:
            for text in waiting:
                painting.write(text)
            waiting.clear()
    for text in waiting:
        painting.write(text)
    spared.show(written.getvalue().encode())
    assert spared.seen == plain.seen


def test_a_slow_terminal_has_one_frame_waiting_and_misses_the_others() -> None:
    canvas, written = Canvas(), io.StringIO()
    handed = [canvas.hand_over(f"\x1b[1;1Hframe {number}", SIZE) for number in range(100)]
    assert [text for text in handed if text is not None] == [FRAME]
    Painting(written, canvas).write(FRAME)
    assert "frame 99" in written.getvalue()
    assert "frame 98" not in written.getvalue()


def test_what_is_shown_already_is_not_written_again() -> None:
    canvas, written = Canvas(), io.StringIO()
    painting = Painting(written, canvas)
    for text in ("\x1b[2;1H\x1b[1;38;2;9;9;9mthe same\x1b[0m", "\x1b[2;1H\x1b[1;38;2;9;9;9mthe same\x1b[0m"):
        canvas.hand_over(text, SIZE)
        before = written.tell()
        painting.write(FRAME)
    assert before == written.tell() > 0


@pytest.mark.parametrize("foreign", FOREIGN[-2:])
def test_what_may_have_changed_the_screen_has_it_painted_anew(foreign: str) -> None:
    canvas, written = Canvas(), io.StringIO()
    painting = Painting(written, canvas)
    for text in ("\x1b[2;1Hthe same", foreign, "\x1b[2;1Hthe same"):
        handed = canvas.hand_over(text, SIZE)
        assert handed is not None
        painting.write(handed)
    assert written.getvalue().count("the same") == 2


def test_another_size_is_painted_anew() -> None:
    canvas, written = Canvas(), io.StringIO()
    painting = Painting(written, canvas)
    for size in (SIZE, (SIZE[0] + 5, SIZE[1])):
        canvas.hand_over("\x1b[2;1Hthe same", size)
        painting.write(FRAME)
    assert written.getvalue().count("the same") == 2


def test_a_frame_is_shown_at_once_where_the_terminal_can() -> None:
    canvas, written = Canvas(), io.StringIO()
    assert canvas.hand_over(SYNC_START, SIZE) is None
    canvas.hand_over("\x1b[1;1Hx", SIZE)
    assert canvas.hand_over(SYNC_END, SIZE) is None
    Painting(written, canvas).write(FRAME)
    assert written.getvalue().startswith(SYNC_START)
    assert written.getvalue().endswith(SYNC_END)
