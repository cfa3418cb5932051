"""What leaves the screen: text for the clipboard, files, and the short sentences that say what happened.

A terminal takes the clipboard by an escape sequence (OSC 52) and never says whether it did; tmux and some terminals
drop it silently. What is copied is therefore also written to a file, which the sentence names.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from pathlib import Path

import platformdirs


class Outlet:
    """`folder` gets the files a person asks for; `copy_file` always holds what was copied last."""

    def __init__(
        self,
        say: Callable[[str, str], None],
        send: Callable[[str], None],
        *,
        folder: Path | None = None,
        copy_file: Path | None = None,
        clock: Callable[[], float] = time.time,
        in_tmux: bool | None = None,
    ) -> None:
        self._say = say
        self._send = send
        self.folder = folder
        self.copy_file = copy_file or platformdirs.user_cache_path("emmy", appauthor=False) / "copied.txt"
        self._clock = clock
        self._in_tmux = "TMUX" in os.environ if in_tmux is None else in_tmux

    def say(self, text: str) -> None:
        self._say(text, "information")

    def warn(self, text: str) -> None:
        self._say(text, "warning")

    def copy(self, text: str, what: str) -> None:
        """To the clipboard and to the file; says where it is."""
        self._send(clipboard_escapes(text, in_tmux=self._in_tmux))
        try:
            self.copy_file.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file.write_text(text + "\n", encoding="utf-8", errors="replace")
        except OSError as error:
            self.warn(f"{what} sent to the clipboard; {self.copy_file} can't be written: {error.strerror}")
            return
        self.say(f"{what} copied; also in {short_path(self.copy_file)}")

    def write(self, stem: str, texts: dict[str, str]) -> None:
        """Write a file for each ending, named after the moment; says where they are."""
        folder = self.folder or Path.cwd()
        name = f"emmy-{stem}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(self._clock()))}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            paths = [_write_new(folder, name, ending, text) for ending, text in texts.items()]
        except OSError as error:
            self.warn(f"{folder} can't be written: {error.strerror or error}; name another folder in the config file")
            return
        self.say(f"written: {', '.join(short_path(path) for path in paths)}")


def _write_new(folder: Path, name: str, ending: str, text: str) -> Path:
    """Never over a file that is there."""
    for number in range(1, 1000):
        path = folder / f"{name}{f'-{number}' if number > 1 else ''}.{ending}"
        try:
            with path.open("x", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{name} exists a thousand times")


def clipboard_escapes(text: str, *, in_tmux: bool) -> str:
    """OSC 52, and within tmux once more in its envelope for terminals outside."""
    escape = f"\x1b]52;c;{base64.b64encode(text.encode('utf-8', 'replace')).decode()}\x07"
    return f"{escape}\x1bPtmux;\x1b{escape}\x1b\\" if in_tmux else escape


def short_path(path: Path) -> str:
    """The path as a person would type it."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)
