"""A scripted run at a pace, for looking at: python -m tests.emmy_tui.paced [--ascii] [--rate N]."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from emmy_tui.app import EmmyApp
from emmy_tui.look import Look
from engine.events import Event, Logged, StateChanged
from tests.emmy_tui.scripted import START, ScriptedSource, search_events


class PacedSource(ScriptedSource):
    """Lets `rate` events a second through, for looking at."""

    def __init__(self, events: Sequence[Event], rate: float) -> None:
        super().__init__(events)
        self._rate = rate
        self._from: float | None = None
        self._given = 0

    def drain(self, limit: int) -> list[Event]:
        if self._from is None:
            self._from = time.monotonic()
        if "pause" not in self.capabilities:
            return [] if not self.waiting or not isinstance(self.waiting[-1], StateChanged) else [self.waiting.pop()]
        due = int((time.monotonic() - self._from) * self._rate) - self._given
        events = super().drain(max(0, min(limit, due)))
        self._given += len(events)
        return events


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("--rate", type=float, default=120.0)
    parser.add_argument("--extra", default="", help="text put into the log, to see how it is shown")
    options = parser.parse_args()
    events: list[Event] = search_events()
    if options.extra:
        events.insert(4, Logged(at=START, level="info", text=options.extra))
    shift = time.time() - START
    object.__setattr__(events[0], "at", START + shift)
    app = EmmyApp(PacedSource(events, options.rate), Look(ascii=options.ascii))
    app.run()
    sys.exit(app.return_code)


if __name__ == "__main__":
    main()
