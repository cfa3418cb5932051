"""Jump mode: every panel shows a letter, and the next key focuses the panel that has it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.events import Key
from textual.screen import ModalScreen

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
