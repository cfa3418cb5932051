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

    def is_others(record: logging.LogRecord) -> bool:
        return threading.get_ident() != thread or record.name.partition(".")[0] != "torch"

    handlers = _handlers()
    for handler in handlers:
        handler.addFilter(is_others)
    stream: Any = _Elsewhere(sys.stderr) if sys.stderr is not None else None
    try:
        with contextlib.redirect_stderr(stream), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_others)


def _handlers() -> list[logging.Handler]:
    """All that could write torch's log lines: torch gives many of its loggers handlers of their own."""
    known = list(logging.root.manager.loggerDict.items())
    loggers = [one for name, one in known if name.partition(".")[0] == "torch" and isinstance(one, logging.Logger)]
    return list({id(handler): handler for one in (logging.root, *loggers) for handler in one.handlers}.values())
