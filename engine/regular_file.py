"""Files that a person names, opened without a trap: a pipe never answers, a device never ends, and a terminal's device
takes the keys that are pressed. Only what is a regular file when it is open is read, and not more of it than wanted.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


class NoRegularFile(OSError):
    """A pipe, a socket or a device; `strerror` is the cause in words."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "it is a pipe or a device, and no file", str(path))


class LargeFile(OSError):
    """More than is read of such a file; `strerror` is the cause in words."""

    def __init__(self, path: Path, most: int) -> None:
        bound = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most} bytes"
        super().__init__(errno.EFBIG, f"it holds more than {bound}, which is the most that is read", str(path))


def open_regular(path: Path) -> BinaryIO:
    """The file, opened for reading. Raises OSError, NoRegularFile among them; a pipe is not waited for."""
    _check(os.stat(path), path)  # before it is opened: to open a device may do something already
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        with suppress(OSError):
            os.close(descriptor)
        raise


def read_regular(path: Path, most: int) -> bytes:
    """All of the file, at most `most` bytes. Raises OSError, NoRegularFile and LargeFile among them."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise LargeFile(path, most)
        data = file.read(most + 1)  # it may have grown, or be one of /proc, whose size is 0
    if len(data) > most:
        raise LargeFile(path, most)
    return data


def _check(status: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise NoRegularFile(path)
