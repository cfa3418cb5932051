"""Keeping to itself what torch prints while it follows a call: graphs, log lines and warnings about its own names.

What it failed at is raised as one sentence; the rest names files and variables that the user never wrote.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

_TALKATIVE = ("torch.fx.experimental.symbolic_shapes", "torch.export._trace", "torch.fx.experimental.proxy_tensor")


class _Elsewhere:
    """A stream that drops what one thread writes, and hands on what others do."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() == self._thread:
            return len(text)
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """In the block nothing of torch's is written to standard error, nor warned of, by this thread."""
    thread = threading.get_ident()

    def is_others(_: logging.LogRecord) -> bool:
        return threading.get_ident() != thread

    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    for logger in loggers:
        logger.addFilter(is_others)
    stream: Any = _Elsewhere(sys.stderr) if sys.stderr is not None else None
    try:
        with contextlib.redirect_stderr(stream), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_others)
