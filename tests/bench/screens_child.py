"""What `screens_terminal.py` runs in a terminal of its own: the application over a long scripted run.

    python tests/bench/screens_child.py RATE SECONDS REPORT [DATABASE]

Writes to REPORT, as JSON, how late the event loop was and which share of a core the process took.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import emmy_tui.app
from emmy_tui import collecting
from emmy_tui.app import EmmyApp
from emmy_tui.config import Config
from emmy_tui.database_source import DatabaseSource
from emmy_tui.preferences import look_of
from emmy_tui.source import Source
from tests.emmy_tui.paced import PacedSource
from tests.emmy_tui.scripted import WORKS, search_events

PROBE_S = 0.005
WARM_S = 1.5


class Probed(EmmyApp):
    """Measures itself from WARM_S after the start for `seconds`, then leaves."""

    CSS_PATH = Path(emmy_tui.app.__file__).with_name("emmy.tcss")
    seconds = 5.0
    report = Path("report.json")

    def on_mount(self) -> None:
        super().on_mount()
        self.painted_at = time.monotonic()
        self.probe = asyncio.get_running_loop().create_task(self._probe())

    async def _probe(self) -> None:
        await asyncio.sleep(WARM_S)
        while self.view.reading:  # what a database held before is no part of what is measured
            await asyncio.sleep(PROBE_S)
        late: list[float] = []
        own: list[float] = []
        began, cpu = time.perf_counter(), time.process_time()
        schedstat = os.open("/proc/self/schedstat", os.O_RDONLY)  # opened once: what the probe takes is counted, too
        while time.perf_counter() - began < self.seconds:
            before, waited = time.perf_counter(), waited_s(schedstat)
            await asyncio.sleep(PROBE_S)
            late.append(time.perf_counter() - before - PROBE_S)
            own.append(late[-1] - (waited_s(schedstat) - waited))
        share = (time.process_time() - cpu) / (time.perf_counter() - began)
        late.sort()
        self.report.write_text(
            json.dumps(
                {
                    "stall_ms": late[-1] * 1000,
                    "own_stall_ms": max(own) * 1000,
                    "stall_p99_ms": late[len(late) * 99 // 100] * 1000,
                    "cpu": share,
                    "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                    "events": self.view.snapshot.measured + self.view.snapshot.cached,
                }
            )
        )
        self.exit()


def waited_s(schedstat: int) -> float:
    """Seconds that this process was ready to run and had no core."""
    return int(os.pread(schedstat, 64, 0).split()[1]) / 1e9


def main() -> None:
    rate, seconds, report = float(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    if len(sys.argv) > 4:
        source: Source = DatabaseSource(Path(sys.argv[4]))
    else:
        times = max(1, round(rate * (seconds + WARM_S + 2) / 1800))
        works = [replace(work, trials=work.trials * times) for work in WORKS]
        source = PacedSource(search_events(works=works), rate)
    app = Probed(source, look_of(Config(), os.environ))
    app.seconds, app.report = seconds, report
    collecting.begin()  # also of the events that wait: the application never holds a whole run of them
    app.run()


if __name__ == "__main__":
    main()
