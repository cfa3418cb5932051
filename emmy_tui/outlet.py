"""What leaves the screen: text for the clipboard, files, and the short sentences that say what happened.

No terminal says whether it took what was sent to its clipboard. What is copied is therefore also written to a file,
which the sentence names beside where the text went.
"""

from __future__ import annotations

import os
import shlex
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path

import platformdirs

from emmy_tui.action import Named
from emmy_tui.actions import key_named
from emmy_tui.clipboard import clipboard_escape, load_tmux_buffer, through_tmux
from emmy_tui.text import escaped
from emmy_tui.whole_file import write_new, write_whole

Aside = Callable[[Callable[[], bool], Callable[[bool], None], Callable[[str], None]], None]
"""Does something on a thread of its own, then hands over the answer, or a sentence why there is none."""


def at_once(act: Callable[[], bool], then: Callable[[bool], None], failed: Callable[[str], None]) -> None:
    then(act())


class Outlet:
    """`folder` gets the files a person asks for; `copy_file` always holds what was copied last; `key` names the keys
    in what is said. `refused` counts the files and copies that came to nothing."""

    refused = 0

    def __init__(
        self,
        say: Callable[[str, str], None],
        send: Callable[[str], None],
        *,
        folder: Path | None = None,
        copy_file: Path | None = None,
        clock: Callable[[], float] = time.time,
        in_tmux: bool | None = None,
        load_buffer: Callable[[str], bool] = load_tmux_buffer,
        aside: Aside = at_once,
        key: Named = key_named,
    ) -> None:
        self._say = say
        self._send = send
        self.folder = folder
        self.copy_file = copy_file or platformdirs.user_cache_path("emmy", appauthor=False) / "copied.txt"
        self._clock = clock
        self._in_tmux = "TMUX" in os.environ if in_tmux is None else in_tmux
        self._load_buffer = load_buffer
        self._aside = aside
        self._file = ""
        self._copies: list[str] = []
        self.key = key

    @property
    def expected(self) -> tuple[str, ...]:
        """What was asked for and is on its way, in words: the file whose content is being read, and what is copied."""
        return (*([self._file] if self._file else []), *self._copies)

    def say(self, text: str) -> None:
        self._say(text, "information")

    def warn(self, text: str) -> None:
        self._say(text, "warning")

    def expect(self, what: str) -> None:
        """A file gets written once what it holds was read: by `write`, unless `refuse` says why not."""
        self._file = what

    def refuse(self, text: str) -> None:
        self._file = ""
        self.refused += 1
        self.warn(text)

    def copy(self, text: str, what: str) -> None:
        """To the clipboard and to the file, with no control character in it; says where it is."""
        text = escaped(text)
        if not self._in_tmux:
            self._send(clipboard_escape(text))
            self._copied(f"{what} copied, if the terminal takes OSC 52", text)
            return

        copy = f"the copy of the {what}"
        self._copies.append(copy)

        def loaded(taken: bool) -> None:
            self._copies.remove(copy)
            if not taken:
                self._send(through_tmux(clipboard_escape(text)))
            where = "to tmux (prefix ] pastes)" if taken else "if tmux and the terminal take OSC 52"
            self._copied(f"{what} copied{'' if taken else ','} {where}", text)

        self._aside(lambda: self._load_buffer(text), loaded, lambda _: loaded(False))

    def _copied(self, done: str, text: str) -> None:
        """Write the file, and say what was done."""
        try:
            self.copy_file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.copy_file, text + "\n")
        except OSError as error:
            self.refused += 1
            self.warn(f"{done}; {self.copy_file} can't be written: {error.strerror}")
            return
        self.say(f"{done}; also in {short_path(self.copy_file)}")

    def write(self, stem: str, texts: dict[str, str]) -> None:
        """Write a file for each ending, named after the moment; says where they are."""
        try:
            folder = self.folder or Path.cwd()
        except OSError:
            self.refuse("the working folder is gone; name an export_folder in the config file")
            return
        name = f"emmy-{stem}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(self._clock()))}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            paths = write_new(folder, name, texts)
        except OSError as error:
            self.refuse(f"{folder} can't be written: {error.strerror or error}; name another folder in the config file")
            return
        self._file = ""
        self.say(f"written: {', '.join(short_path(path) for path in paths)}")


def command_text(command: str) -> str:
    """The command in one line that a shell reads as the same words, with no control character in it.

    A recorded command of somebody else's database may hold a line break, which a terminal that it is pasted into would
    take for the end of the command. Raises ValueError for what no shell can be given.
    """
    if escaped(command) == command:
        return command
    return " ".join(_shell_word(word) for word in shlex.split(command))


def _shell_word(word: str) -> str:
    """Quoted, where it needs to be as $'…' with the escapes that bash and zsh know."""
    if escaped(word) == word:
        return shlex.quote(word)
    if "\0" in word or any(unicodedata.category(one) == "Cs" for one in word):
        raise ValueError("a shell takes no such character")
    return f"$'{''.join(_shell_character(one) for one in word)}'"


def _shell_character(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    return character if escaped(character) == character else f"\\U{ord(character):08x}"


def short_path(path: Path) -> str:
    """The path as a person would type it."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)
