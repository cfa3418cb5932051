"""What the screen writes to, so that it is known when the terminal last took something."""

from __future__ import annotations

import io
import select
import time
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typing_extensions import Buffer

PIECE = 2048
"""Bytes that are written at once: all of a frame would be one write that says nothing until its end."""


class Taking(io.FileIO):
    """Writes to the terminal on `descriptor`; one that takes nothing is waited for, also where whatever ran in it
    before has left it non-blocking. `taken_at` is when it last took something, in seconds of the monotonic clock."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.taken_at = time.monotonic()

    def write(self, data: Buffer, /) -> int:
        piece = memoryview(data)[:PIECE]
        while (taken := cast(int | None, super().write(piece))) is None:
            select.select((), (self,), ())
        self.taken_at = time.monotonic()
        return taken

    def as_text(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BufferedWriter(self), encoding="utf-8", errors="replace")
