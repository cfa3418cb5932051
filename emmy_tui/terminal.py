"""What a full-screen program owes the terminal and Textual leaves open; each gap with its stopper.

- SIGTERM and SIGHUP end a Textual program with the alternate screen and mouse reporting on: `handle_signals`. Before
  there is a screen they end the program at once, and while it is put up they wait for its loop: `EarlySignals`.
- After SIGKILL and a crash (SIGSEGV, SIGABRT) nothing of this process can restore anything: `emmy_tui.supervising`.
- Textual draws on standard error, so what a driver or a compiler writes to descriptor 1 or 2 lands on the screen:
  `quiet_descriptors` lets Textual draw on a copy and sends both descriptors to the log file.
- Without a terminal, or on TERM=dumb, Textual floods the output with escapes: `refuse_because`.
- Textual takes COLUMNS and LINES for the size before it asks the terminal, which somebody may have resized since they
  were exported: `forget_size`.
- When the terminal is closed, Textual's thread that writes there ends with a traceback: `quiet_descriptors` logs a
  sentence in its place.
- After an exception Textual exits with status 0: the caller passes on `App.return_code`.

The cause of every such end is in the log: a signal's name, and after a crash or SIGQUIT what each thread was at.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import faulthandler
import logging
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from types import FrameType

import platformdirs

LOG = logging.getLogger("emmy_tui")
LEAVING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)

STUCK_S = 3.0
"""How long a terminal that takes nothing is waited for. A slow one takes something more often."""
MOST_CELLS = 1000
"""The most columns or rows that are believed of a terminal: memory and time go by them."""


def default_log_file() -> Path:
    """Where the log goes if nobody says otherwise."""
    return platformdirs.user_log_path("emmy") / "emmy-tui.log"


def refuse_because(environ: Mapping[str, str]) -> str | None:
    """Why no full-screen program can run here, or None."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not all(stream is not None and stream.isatty() for stream in streams):  # None: closed by whoever started this
        return "emmy-tui needs a terminal"
    if environ.get("TERM", "") in ("", "dumb"):
        return f"emmy-tui can't draw on a terminal of type {environ.get('TERM') or 'none'!r}"
    return None


def forget_size(environ: MutableMapping[str, str]) -> None:
    """Take the size out of `environ` where the terminal on stdin knows its own, and where it is none."""
    try:
        known = all(os.get_terminal_size(sys.stdin.fileno()))
    except OSError:
        known = False
    for name in ("COLUMNS", "LINES"):
        said = environ.get(name, "")
        if known or not (said.isdecimal() and 0 < int(said[:9]) <= MOST_CELLS):
            environ.pop(name, None)


def believed_size(columns: int, rows: int) -> tuple[int, int]:
    """A terminal may say anything of its size."""
    return min(max(columns, 1), MOST_CELLS), min(max(rows, 1), MOST_CELLS)


def is_closed(terminal: int) -> bool:
    """Whether the other end is gone."""
    try:
        termios.tcgetattr(terminal)
    except termios.error:
        return True
    return False


def is_ours(terminal: int) -> bool:
    """Whether the terminal is this job's, and no shell has put it in the background; so without job control."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return True


def open_log(path: Path, *, make_folder: bool = False) -> int:
    """A descriptor that appends to the log file; a folder is made for ours alone, not for a name that was typed.

    Raises OSError if it can't be written; a pipe is not waited for.
    """
    if make_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a pipe that nobody reads", str(path)) from None
        raise
    os.set_blocking(log, True)
    return log


def within(seconds: float, act: Callable[[], None]) -> None:
    """Act, but leave what hangs to the end of the process, whose threads are daemons."""
    thread = threading.Thread(target=act, name="emmy-within", daemon=True)
    thread.start()
    thread.join(seconds)


@contextlib.contextmanager
def quiet_descriptors(log: int) -> Iterator[None]:
    """Send descriptors 1 and 2 to `log`; Python's own original streams go on to the terminal, on copies."""
    sys.stdout.flush()
    sys.stderr.flush()
    before = sys.__stdout__, sys.__stderr__, sys.stdout, sys.stderr
    hook, threading.excepthook = threading.excepthook, _say_if_the_terminal_is_gone
    copies = os.dup(1), os.dup(2)
    screens = [os.fdopen(os.dup(copy), "w", encoding="utf-8", errors="replace") for copy in copies]
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.__stdout__, sys.__stderr__ = screens  # type: ignore[misc]
    faulthandler.enable(log)
    faulthandler.register(signal.SIGQUIT, log, all_threads=True, chain=True)
    try:
        yield
    finally:
        for screen in screens:
            with contextlib.suppress(OSError):
                screen.flush()
        sys.__stdout__, sys.__stderr__, sys.stdout, sys.stderr = before  # type: ignore[misc]
        threading.excepthook = hook
        faulthandler.unregister(signal.SIGQUIT)
        faulthandler.disable()
        for copy, target in zip(copies, (1, 2), strict=True):
            os.dup2(copy, target)
            os.close(copy)
        for screen in screens:
            with contextlib.suppress(OSError):
                screen.close()


def _say_if_the_terminal_is_gone(failure: threading.ExceptHookArgs) -> None:
    error = failure.exc_value
    if isinstance(error, OSError) and error.errno in (errno.EIO, errno.EPIPE):
        name = failure.thread.name if failure.thread is not None else "a thread"
        LOG.warning("the terminal is gone: %s ends", name)
    else:
        threading.__excepthook__(failure)


def log_to(descriptor: int) -> None:
    """Python's log records go to the descriptor, and nowhere else."""
    stream = os.fdopen(os.dup(descriptor), "a", encoding="utf-8", errors="replace")
    logging.basicConfig(
        stream=stream, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )


class EarlySignals:
    """SIGTERM and SIGHUP before the screen's loop takes them.

    Until `hold` nothing is switched on that would have to be given back: they end the process. From then on they are
    kept for `handle_signals`, since a screen that is half put up can't be taken down.
    """

    def __init__(self, log: int) -> None:
        self._log = log
        self._holds = False
        self.kept: list[signal.Signals] = []
        for number in LEAVING_SIGNALS:
            signal.signal(number, self._came)

    def hold(self) -> None:
        self._holds = True

    def _came(self, number: int, frame: FrameType | None) -> None:
        came = signal.Signals(number)
        if self._holds:
            self.kept.append(came)
            return
        tell_log(self._log, f"WARNING emmy_tui: {came.name} came: leaving")
        os._exit(128 + number)


def tell_log(log: int, text: str) -> None:
    """A line in the log from where Python's own logging isn't to be had."""
    with contextlib.suppress(OSError):
        os.write(log, f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n".encode())


def handle_signals(
    leave: Callable[[int], None], interrupt: Callable[[], None], kept: Sequence[signal.Signals] = ()
) -> None:
    """Within the running loop: SIGTERM and SIGHUP call `leave(128 + n)`, SIGINT does what ctrl+c does.

    `kept` are those that came before. Of several the first counts: a terminal that is closed sends SIGHUP to both
    processes. SIGQUIT stays what ends the program at once, for a loop that hangs.
    """
    came: list[signal.Signals] = []

    def leave_because(number: signal.Signals) -> None:
        came.append(number)
        if len(came) == 1:
            LOG.warning("%s came: leaving", number.name)
            leave(128 + number)

    loop = asyncio.get_running_loop()
    for number in LEAVING_SIGNALS:
        loop.add_signal_handler(number, leave_because, number)
    loop.add_signal_handler(signal.SIGINT, interrupt)
    for number in kept:
        loop.call_soon(leave_because, number)


def let_interrupts_go() -> None:
    """Within the running loop, from where the screen is taken down: a ctrl+c ends nothing that is ending already.

    The loop would leave Python's own handler behind, which ends the process in the middle.
    """
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
