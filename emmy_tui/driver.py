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
- A terminal that takes nothing any more (a connection that hangs, flow control) stops Textual's loop at the next write,
  for good, and no signal ends it. Here such a write is let go, and the screen is painted anew once the terminal takes
  something: `write`. It can go when a program on a terminal that nobody reads ends by SIGTERM.
- Textual believes any size: at 65535 lines it takes memory until there is none. Here it is bounded: `believed_size`.
"""

from __future__ import annotations

import codecs
import contextlib
import faulthandler
import logging
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable
from queue import Empty, Full
from typing import Any, Protocol, TextIO, cast

from textual import constants
from textual._xterm_parser import XTermParser
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Paste, Resize
from textual.message import Message

from emmy_tui.canvas import Canvas, Painting
from emmy_tui.sequences import MOUSE_PLACES, Cutter, Pasted, Piece
from emmy_tui.terminal import STUCK_S, believed_size, is_closed, is_ours
from emmy_tui.writing import Taking

LOG = logging.getLogger("emmy_tui")

READ_BYTES = 4096
LOOK_S = 0.1
"""How often the input thread looks whether it should end."""
ESCAPE_LOOK_S = 0.01
"""How often it looks whether a lone escape is the key."""
HANGUP_S = 0.5
"""A terminal that is closed sends SIGHUP too, which says more."""
UNHEARD_S = 5.0
"""How long the loop may take to leave once the terminal is gone."""
MOST_WAITING = 1000
"""Messages for the application from which on no more keys are read."""
RESUMED_S = 0.5
"""A second SIGCONT within this time is the same one, from the process above."""
AWAY_S = 0.5
"""How long a program that is woken in the background waits for a signal that tells it to leave."""
STDERR = 2
"""The log, while there is a screen."""
MOUSE, FILLER = b"\x1b[M", ord("!")
INTERRUPT = b"\x03"
"""Ctrl+c, read alone: a person's key, also in a paste whose end was lost."""


class TerminalGone(Exception):
    """Nothing more can come: the terminal was closed."""


class _Screen(Protocol):
    """What the driver asks of its application, and tells it."""

    def keeps_alt(self, character: str) -> bool: ...

    def ended(self, error: BaseException) -> None: ...

    def paint_anew(self) -> None: ...


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

    @property
    def look_s(self) -> float:
        """How long nothing needs to be looked at but what comes."""
        return ESCAPE_LOOK_S if self._cutter.waiting else LOOK_S

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
    stuck = False
    """The terminal took nothing for STUCK_S, and what is written is let go."""

    def __init__(self, *arguments: Any, size: tuple[int, int] | None = None, **options: Any) -> None:
        super().__init__(*arguments, size=size, **options)
        self._size = size or self._get_terminal_size()
        self._taking = Taking(cast(TextIO, self._file).fileno())
        self._canvas = Canvas()
        self._file = Painting(self._taking.as_text(), self._canvas)  # type: ignore[assignment]

    def _get_terminal_size(self) -> tuple[int, int]:
        return believed_size(*super()._get_terminal_size())

    def process_message(self, message: Message) -> None:
        if isinstance(message, Resize):  # a terminal may say its size on the input, too
            message = Resize.from_dimensions(believed_size(*message.size), message.pixel_size)
        super().process_message(message)

    def start_application_mode(self) -> None:
        keys, self._down, self.stuck = self._key_thread, False, False
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._down = self._key_thread is keys  # Textual has found itself in the background

    def stop_application_mode(self) -> None:
        """Give the terminal back; where it is a shell's already, its line discipline is left as the shell wants it."""
        if self._down:
            return
        if not is_ours(self.fileno):
            self.attrs_before = None
        if self.stuck:
            self._forget_frames()
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
        """Hand over to the writing thread, unless the terminal is stuck; of frames one waits: `emmy_tui.canvas`."""
        writer = self._writer_thread
        if self._down or self.stuck or writer is None or not writer.is_alive():
            return
        handed = self._canvas.hand_over(data, self._app.size)
        if handed is not None and not self._handed_over(writer, handed):
            LOG.warning("the terminal takes nothing: what changes is let go until it does")
            self.stuck = True
            self._look_whether_taken()

    def _handed_over(self, writer: WriterThread, data: str | None) -> bool:
        """Wait for room; whether there was any before the terminal was stuck."""
        since = time.monotonic()
        while self._takes(writer, since):
            with contextlib.suppress(Full):
                writer._queue.put(data, timeout=LOOK_S)
                return True
        return False

    def _takes(self, writer: WriterThread, since: float) -> bool:
        return writer.is_alive() and time.monotonic() - max(since, self._taking.taken_at) < STUCK_S

    def _look_whether_taken(self) -> None:
        """Once the terminal has taken all that waited for it, the screen is painted anew."""
        writer = self._writer_thread
        if not self.stuck or writer is None:
            return
        if writer._queue.empty():
            self.stuck = False
            cast(_Screen, self._app).paint_anew()
        else:
            self._loop.call_later(LOOK_S, self._look_whether_taken)

    def forget_shown(self) -> None:
        """Another program may have written over the screen: nobody knows what it shows."""
        self._canvas.forget()

    def _forget_frames(self) -> None:
        """Leave room for what gives the terminal back, should it take something after all."""
        self.stuck = False
        with contextlib.suppress(Empty):
            while self._writer_thread is not None:
                self._writer_thread._queue.get_nowait()

    def close(self) -> None:
        """End the writing thread, which goes on while the terminal takes what waits; `stuck` says whether it hangs."""
        writer = self._writer_thread
        if writer is not None:
            ends, since = self._handed_over(writer, None), time.monotonic()
            while ends and self._takes(writer, since):
                writer.join(LOOK_S)
            self.stuck = writer.is_alive()

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except BaseException as error:
            if isinstance(error, TerminalGone) and self.exit_event.wait(HANGUP_S):
                return
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(cast(_Screen, self._app).ended, error)
            if isinstance(error, TerminalGone) and not self.exit_event.wait(UNHEARD_S):
                self._leave_without_the_loop()

    def _leave_without_the_loop(self) -> None:
        """A loop that hangs, or computes for ever, with nobody there to end it."""
        LOG.critical("the terminal is gone, and the screen hangs: ended")
        faulthandler.dump_traceback(STDERR)
        os._exit(128 + signal.SIGHUP)

    def run_input_thread(self) -> None:
        """Read keys until the driver is stopped. Raises TerminalGone, or OSError for what else is wrong with it.

        What is typed for a shell is left to it: reading it stops the program, and waits for the next line after that.
        """
        keyboard = Keyboard(cast(_Screen, self._app).keeps_alt)
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if self._has_enough():
                    self.exit_event.wait(LOOK_S)
                    continue
                typed = bool(selector.select(keyboard.look_s))
                ours = is_ours(self.fileno)
                if typed and not ours:
                    self.exit_event.wait(LOOK_S)
                typed = typed and ours and bool(selector.select(0))  # a shell may have taken it before
                messages = keyboard.read(self._read()) if typed else []
                for message in (*messages, *keyboard.waited()):
                    self.process_message(message)

    def _has_enough(self) -> bool:
        """Whether more waits for the loop than a person types: the rest waits in the terminal, where it takes no
        memory."""
        return self._app.message_queue_size > MOST_WAITING

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
        self._soon(self._stop)

    def _sigcont_application(self, *_: object) -> None:
        self._soon(self._continued)

    def _soon(self, act: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(act)

    def _stop(self) -> None:
        """Stop, but for a terminal that was closed meanwhile: it has no shell that would call this back."""
        if self._auto_restart:
            self.suspend_application_mode()
            self._must_signal_resume = True
        if is_closed(self.fileno):
            cast(_Screen, self._app).ended(TerminalGone("closed"))
        else:
            os.kill(os.getpid(), signal.SIGSTOP)

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
