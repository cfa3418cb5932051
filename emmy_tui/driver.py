"""The terminal's driver: Textual's, where that gives up over what a terminal sends.

- Textual 8.2.8 ends its input thread at the first byte that isn't UTF-8, and at a key code past the last character, and
  the program with it, without a word and with status 0. Here such a byte is left out, and what can't be read as keys is
  let go: `Keyboard`. What does end the thread is told to the application: `ended`. They can go when a lone 0xe9 on the
  input of a Textual program is no more than a character that isn't there.
- Escape and another key that are read at once, by a program that is slow or a person who is fast, come as one key with
  alt, or as another one. A terminal sends the same bytes for both, and next to nothing here is bound to alt: they are
  two keys. A shorter ESCDELAY is of no use, as it counts from when the bytes are read.
- A terminal's replies come as keys there, and a paste whose end is lost takes every key: `emmy_tui.sequences`.
- After a SIGSTOP from outside, Textual puts the screen up a second time, beside the first, and reads the keys in two
  threads. Here the first is taken down before: what a shell wrote there in between is gone. It can go when `kill -STOP`
  and `fg` leave a program of one input thread and no line of the shell.
- Woken in the background, by `bg` or by a `kill %1` that is to end it, Textual reaches for the terminal, which is the
  shell's, and is stopped in the middle, before it hears of the signal that came along. Here it leaves the terminal
  alone, and stops again only if it isn't told to leave: `_stay_away`. It can go when `kill %1` ends one.
"""

from __future__ import annotations

import codecs
import contextlib
import logging
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable
from typing import Protocol, cast

from textual import constants
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Paste
from textual.message import Message

from emmy_tui.sequences import MOUSE_PLACES, Cutter, Pasted, Piece
from emmy_tui.terminal import is_ours

LOG = logging.getLogger("emmy_tui")

READ_BYTES = 4096
LOOK_S = 0.1
"""How often the input thread looks whether it should end, and whether a lone escape is the key."""
HANGUP_S = 0.5
"""A terminal that is closed sends SIGHUP too, which says more."""
RESUMED_S = 0.5
"""A second SIGCONT within this time is the same one, from the process above."""
AWAY_S = 0.5
"""How long a program that is woken in the background waits for a signal that tells it to leave."""
MOUSE, FILLER = b"\x1b[M", ord("!")
INTERRUPT = b"\x03"
"""Ctrl+c, read alone: a person's key, also in a paste whose end was lost."""


class TerminalGone(Exception):
    """Nothing more can come: the terminal was closed."""


class _Screen(Protocol):
    """What the driver asks of its application, and tells it."""

    def keeps_alt(self, character: str) -> bool: ...

    def ended(self, error: BaseException) -> None: ...


class Keyboard:
    """A terminal's bytes as messages. What isn't UTF-8, or no key, is left out; `read` raises nothing.

    Escape and a character are two keys, but where `keeps_alt` says of the character that they are one, with alt.
    `clock` is in seconds.
    """

    def __init__(
        self,
        keeps_alt: Callable[[str], bool] = lambda character: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("ignore").decode
        self._parser = XTermParser()
        self._cutter = Cutter(keeps_alt, clock)
        self._clock = clock
        self._begins = b""
        self._owed = 0
        self._read_at = 0.0

    def read(self, data: bytes) -> list[Message]:
        text = self._decode(self._without_places(data))
        ended = list(self._cutter.end_paste()) if data == INTERRUPT and self._cutter.pasting else []
        return self._messages([*ended, *self._cutter.cut(text)])

    def waited(self) -> list[Message]:
        """What is complete because nothing came after it: an escape."""
        return self._messages(self._cutter.waited())

    def _messages(self, pieces: Iterable[Piece]) -> list[Message]:
        messages: list[Message] = []
        for piece in pieces:
            if isinstance(piece, Pasted):
                messages.append(Paste(piece.text.replace("\0", "")))
                continue
            try:
                messages += self._parser.feed(piece)
                messages += self._without_waiting()
            except Exception as error:
                LOG.warning("what the terminal sent is no key: %r (%s)", piece[:80], error)
                self._parser = XTermParser()
        return messages

    def _without_waiting(self) -> Iterable[Message]:
        """A piece is whole: nothing more belongs to it."""
        if self._parser._timeout_time is not None:
            self._parser._timeout_time = 0.0
        return self._parser.tick()

    def _without_places(self, data: bytes) -> bytes:
        """The places of mouse reports of the oldest kind are three bytes of any value: they are replaced by text."""
        if self._clock() - self._read_at > constants.ESCAPE_DELAY:
            self._begins, self._owed = b"", 0
        self._read_at = self._clock()
        tame = bytearray()
        for byte in data:
            if self._owed:
                self._owed -= 1
                byte = FILLER
            else:
                self._begins = (self._begins + bytes((byte,)))[-len(MOUSE) :]
                self._owed = MOUSE_PLACES if self._begins == MOUSE else 0
            tame.append(byte)
        return bytes(tame)


class TerminalDriver(LinuxDriver):
    """Tells the application, by its `ended`, what ended the input thread."""

    _resuming, _resumed_at = False, 0.0
    _down = False
    """The screen was taken down for a stop, and nothing is written until it is up again."""

    def start_application_mode(self) -> None:
        keys, self._down = self._key_thread, False
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._down = self._key_thread is keys  # Textual has found itself in the background

    def stop_application_mode(self) -> None:
        """Give the terminal back; where it is a shell's already, its line discipline is left as the shell wants it."""
        if self._down:
            return
        if not is_ours(self.fileno):
            self.attrs_before = None
        super().stop_application_mode()
        self._down = True

    def disable_input(self) -> None:
        """End the input thread; what was typed for a shell, or for the screen that comes back, is not thrown away."""
        if is_ours(self.fileno) and not self._resuming:
            super().disable_input()
        elif self._key_thread is not None:
            self._disable_mouse_support()
            self.exit_event.set()
            self._key_thread.join()
            self.exit_event.clear()

    def write(self, data: str) -> None:
        if not self._down:
            super().write(data)

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except BaseException as error:
            if isinstance(error, TerminalGone) and self.exit_event.wait(HANGUP_S):
                return
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(cast(_Screen, self._app).ended, error)

    def run_input_thread(self) -> None:
        """Read keys until the driver is stopped. Raises TerminalGone, or OSError for what else is wrong with it.

        What is typed for a shell is left to it: reading it stops the program, and waits for the next line after that.
        """
        keyboard = Keyboard(cast(_Screen, self._app).keeps_alt)
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                typed = bool(selector.select(LOOK_S))
                ours = is_ours(self.fileno)
                if typed and not ours:
                    self.exit_event.wait(LOOK_S)
                typed = typed and ours and bool(selector.select(0))  # a shell may have taken it before
                messages = keyboard.read(self._read()) if typed else []
                for message in (*messages, *keyboard.waited()):
                    self.process_message(message)

    def _read(self) -> bytes:
        try:
            data = os.read(self.fileno, READ_BYTES)
        except BlockingIOError:  # somebody else has taken what was there
            return b""
        except OSError as error:
            raise TerminalGone(error.strerror) from error
        if not data:
            raise TerminalGone("end of file")
        return data

    def _sigtstp_application(self, *_: object) -> None:
        """A signal comes in the midst of anything, with whatever locks that holds: the loop does what there is to."""
        self._soon(super()._sigtstp_application)

    def _sigcont_application(self, *_: object) -> None:
        self._soon(self._continued)

    def _soon(self, act: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(act)

    def _continued(self) -> None:
        """After ctrl+z the screen was taken down before; after a SIGSTOP from outside it is still up, with what the
        shell wrote on it."""
        if not is_ours(self.fileno):
            self._loop.call_later(AWAY_S, self._stay_away)
            return
        up = self._key_thread is not None and self._key_thread.is_alive()
        just_resumed = up and time.monotonic() - self._resumed_at < RESUMED_S
        if self._resuming or just_resumed or not self._auto_restart:
            return
        self._resuming = True
        try:
            if up:
                self.suspend_application_mode()
                self._must_signal_resume = True
            self.resume_application_mode()
        finally:
            self._resuming, self._resumed_at = False, time.monotonic()

    def _stay_away(self) -> None:
        """Woken in the background a while ago: stop again, but to leave; a shell may have called it back meanwhile."""
        if self._app._exit:
            return
        if is_ours(self.fileno):
            self._continued()
        else:
            os.kill(os.getpid(), signal.SIGSTOP)
