"""Standard streams that are closed, full or gone: a closed stdin or stderr is like /dev/null, the others are an error
of one line: who asked for output has none.

Python gives a closed stream as None, and the next file that is opened would take its place: a child that prints would
then write into a database.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO


def open_closed() -> None:
    """Put /dev/null in the place of each standard stream that was closed when the process began.

    That of stdout is open for reading only, so that what is written to it is refused as by the closed one.
    """
    for name, mode, flags in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))  # it stays open until the process ends


def stdout_fault() -> OSError | None:
    """Why stdout can't be written, or None if it can: one more line end is written to find out."""
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError as error:
        return error
    return None


def discard(stream: TextIO) -> None:
    """Send what the stream still holds, and all that follows, to /dev/null: else the interpreter fails as it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
