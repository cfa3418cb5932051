"""Jump mode: every panel shows a letter, and the next key focuses the panel that has it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.events import Key
from textual.screen import ModalScreen

from emmy_tui.text import width_of

Painted = tuple[tuple[str, str], ...]
"""A line's texts, each with its tone."""

LETTERS = "asdfghjklqwertyuiopzxcvbnm"


def letters_of(panels: Sequence[str]) -> dict[str, str]:
    """A letter for each panel."""
    return dict(zip(panels, LETTERS, strict=False))


class Jump(ModalScreen[str]):
    """Answers with the panel whose letter is pressed, with "" for any other key."""

    def __init__(self, letters: dict[str, str]) -> None:
        super().__init__()
        self._panels = {letter: panel for panel, letter in letters.items()}

    def on_key(self, event: Key) -> None:
        event.stop()
        self.dismiss(self._panels.get(event.key, ""))


def put_letter(lines: list[Painted], letter: str, tone: str) -> None:
    """Put a panel's letter on its lines: at the end of the first that is blank there, else over the first one's start.

    A panel without a title has no place of its own for it.
    """
    for at, line in enumerate(lines):
        text = "".join(text for text, _ in line)
        if text.endswith(" " * (len(letter) + 1)):
            lines[at] = (*_without_end(line, len(letter)), (letter, tone))
            return
    lines[0] = ((letter, tone), *_without_start(lines[0], len(letter)))


def _without_end(line: Painted, blanks: int) -> Painted:
    """The line without so many blanks at its end."""
    kept: list[tuple[str, str]] = []
    for text, tone in reversed(line):
        cut = min(blanks, len(text))
        blanks -= cut
        kept.append((text[: len(text) - cut], tone))
    return tuple(reversed(kept))


def _without_start(line: Painted, width: int) -> Painted:
    """The line from cell `width` on; a wide character that the cut goes through is gone."""
    kept: list[tuple[str, str]] = []
    for text, tone in line:
        if width <= 0:
            kept.append((text, tone))
            continue
        while text and width > 0:
            width -= width_of(text[0])
            text = text[1:]
        kept.append((" " * -width + text if width < 0 else text, tone))
    return tuple(kept)
