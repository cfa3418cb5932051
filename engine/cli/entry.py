"""Where the `emmy` command begins: a Ctrl-C while the program still loads ends it without a word.

Loading takes tenths of a second, and nothing is open yet that would have to be closed. So the process leaves at once:
an exception would surface in the middle of an import, where libraries print it, turn it into another or swallow it.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType

INTERRUPTED = 130

Handler = Callable[[int, FrameType | None], object] | int | None
"""What Python takes as a handler of a signal."""


class Loading:
    """While it is entered, Ctrl-C leaves at once with 130; one that is ignored or handled by others stays so."""

    def __init__(self) -> None:
        self._former: Handler = None

    def __enter__(self) -> None:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._former = _handle_interrupts(_leave)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._former is not None:
            _handle_interrupts(self._former)


def _handle_interrupts(handler: Handler) -> Handler:
    """Set the handler of Ctrl-C; returns the former one, or None in a thread that may set none."""
    try:
        return signal.signal(signal.SIGINT, handler)
    except ValueError:
        return None


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def leave_blas_alone() -> None:
    """Keep NumPy and SciPy, before they load, from starting a thread a CPU for products of matrices: there are none
    here, and the threads spin for a while all the same. What the user set stays."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main(arguments: Sequence[str] | None = None) -> None:
    """Load the command line and run one command; leaves with its exit code.

    At the end of the process nobody looks through what it leaves for circles: after a run that is half a second.
    """
    atexit.register(gc.freeze)
    leave_blas_alone()
    with Loading():
        from engine.cli.application import main as run
    run(arguments)
