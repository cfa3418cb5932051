"""The process of an engine whose screen is another process; see `serving` for what it does, `separate` for who asks."""

from __future__ import annotations

import faulthandler
import logging
import signal
import sys
from typing import NoReturn

from engine.measure import ChannelClosed, open_channel
from engine.session.serving import serve
from engine.session.tuning import TuningSession
from engine.tune import unpacked


def main(read_fd: int, write_fd: int, parent: int) -> NoReturn:
    """What it prints goes to the log of the screen: its errors, what its threads were at in a crash, and at SIGQUIT."""
    channel = open_channel(read_fd, write_fd, parent)
    faulthandler.enable()
    faulthandler.register(signal.SIGQUIT, all_threads=True, chain=True)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    try:
        work, settings, queues = unpacked(channel.receive()["work"])
        serve(channel, TuningSession(work, settings, queues=queues))
    except ChannelClosed:
        pass
    raise SystemExit(0)
