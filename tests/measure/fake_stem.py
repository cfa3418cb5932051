"""A stem without torch: benchmark processes without a GPU branch off from it. FAKE_STEM says what is wrong with it."""

from __future__ import annotations

import os
import sys
import threading
import time

from engine.measure.child_side import open_channel
from engine.measure.stem_child import serve
from tests.measure.fake_worker import main as serve_requests


def main() -> None:
    fault = os.environ.get("FAKE_STEM", "")
    if fault == "dies":
        sys.exit("no torch for you")
    channel = open_channel(*map(int, sys.argv[1:4]))
    if fault == "has threads":
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    if fault == "never imports":
        time.sleep(1000)
    if fault == "cannot fork":
        os.fork = _refuse  # type: ignore[assignment]
    serve(channel, serve_requests)


def _refuse() -> int:
    raise BlockingIOError("no process is left")


if __name__ == "__main__":
    main()
