"""How the screen looks and what a person has set: theme, rate, keys, folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from textual.theme import Theme

DARK, LIGHT, TERMINAL = "textual-dark", "textual-light", "ansi-dark"
"""The terminal's own colours are those of `ansi-dark`."""


@dataclass(frozen=True, slots=True)
class Look:
    """`fps` is redraws a second. `keys` replaces keys of actions by name; folders are None for the usual ones."""

    fps: float = 4.0
    ascii: bool = False
    theme: str = DARK
    read_only: bool = False
    no_color: bool = False
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    export_folder: Path | None = None
    copy_file: Path | None = None


def theme_after(theme: Theme, own: str) -> str:
    """What T shows next: after a dark one light, then the terminal's colours, then `own`, the theme of the start."""
    if theme.ansi:
        return own if own not in (LIGHT, TERMINAL) else DARK
    return LIGHT if theme.dark else TERMINAL
