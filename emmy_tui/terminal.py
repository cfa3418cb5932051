"""What a full-screen program owes the terminal and Textual leaves open; each gap with its stopper.

- SIGTERM and SIGHUP end a Textual program with the alternate screen and mouse reporting on: `handle_signals`.
- After SIGKILL and a crash (SIGSEGV, SIGABRT) nothing of this process can restore anything: `emmy_tui.supervising`.
- Textual draws on standard error, so what a driver or a compiler writes to descriptor 1 or 2 lands on the screen:
  `quiet_descriptors` lets Textual draw on a copy and sends both descriptors to the log file.
- Without a terminal, or on TERM=dumb, Textual floods the output with escapes: `refuse_because`.
- After an exception Textual exits with status 0: the caller passes on `App.return_code`.

The cause of every such end is in the log: a signal's name, and after a crash or SIGQUIT what each thread was at.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import platformdirs

LOG = logging.getLogger("emmy_tui")
LEAVING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def default_log_file() -> Path:
    """Where the log goes if nobody says otherwise."""
    return platformdirs.user_log_path("emmy") / "emmy-tui.log"


def refuse_because(environ: Mapping[str, str]) -> str | None:
    """Why no full-screen program can run here, or None."""
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        return "emmy-tui needs a terminal"
    if environ.get("TERM", "") in ("", "dumb"):
        return f"emmy-tui can't draw on a terminal of type {environ.get('TERM') or 'none'!r}"
    return None


def open_log(path: Path, *, make_folder: bool = False) -> int:
    """A descriptor that appends to the log file; a folder is made for ours alone, not for a name that was typed.

    Raises OSError if it can't be written.
    """
    if make_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


@contextlib.contextmanager
def quiet_descriptors(log: int) -> Iterator[None]:
    """Send descriptors 1 and 2 to `log`; Python's own original streams go on to the terminal, on copies."""
    sys.stdout.flush()
    sys.stderr.flush()
    before = sys.__stdout__, sys.__stderr__, sys.stdout, sys.stderr
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
        faulthandler.unregister(signal.SIGQUIT)
        faulthandler.disable()
        for copy, target in zip(copies, (1, 2), strict=True):
            os.dup2(copy, target)
            os.close(copy)
        for screen in screens:
            with contextlib.suppress(OSError):
                screen.close()


def log_to(descriptor: int) -> None:
    """Python's log records go to the descriptor, and nowhere else."""
    stream = os.fdopen(os.dup(descriptor), "a", encoding="utf-8", errors="replace")
    logging.basicConfig(
        stream=stream, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )


def handle_signals(leave: Callable[[int], None], interrupt: Callable[[], None]) -> None:
    """Within the running loop: SIGTERM and SIGHUP call `leave(128 + n)`, SIGINT does what ctrl+c does.

    SIGQUIT stays what ends the program at once, for a loop that hangs.
    """

    def leave_because(number: signal.Signals) -> None:
        LOG.warning("%s came: leaving", number.name)
        leave(128 + number)

    loop = asyncio.get_running_loop()
    for number in LEAVING_SIGNALS:
        loop.add_signal_handler(number, leave_because, number)
    loop.add_signal_handler(signal.SIGINT, interrupt)
