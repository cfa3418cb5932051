"""One round of `screen_cost`: what its database says of it, in the order in which results arrived."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

Key = tuple[str, str, str]
"""Kernel, schedule and regime."""

RANKING = "ranking"

_RANKED = (
    "SELECT measured_at, kernel_key, schedule, 'ranking', run_s, median_us FROM measurement "
    "WHERE measured_at IS NOT NULL"
)
_DEPLOYED = (
    "SELECT min(deploy_at), kernel_key, schedule, 'deploy', deploy_run_s, deploy_us FROM node "
    "WHERE deploy_at IS NOT NULL GROUP BY kernel_key, schedule"
)


@dataclass(frozen=True, slots=True)
class Cpu:
    """Seconds of a round: of the wall, of the CPU that the tuner's process took, and the one that draws or waits.

    Without the screen the tuner's process folds the events for the command line, with it it packs them for the screen.
    """

    wall_s: float
    process_s: float
    screen_s: float


@dataclass(frozen=True, slots=True)
class Arrival:
    """When a result was there (s since 1970), and the seconds of them that the benchmark process took for it."""

    at: float
    key: Key
    run_s: float


@dataclass(frozen=True, slots=True)
class Round:
    """A run with the screen or without. Moments are seconds since 1970, medians us; `arrivals` are in their order."""

    on: bool
    began: float
    ended: float
    arrivals: tuple[Arrival, ...]
    medians: Mapping[Key, float]
    failed: int = 0
    cpu: Cpu | None = None

    @property
    def candidates(self) -> int:
        """How many schedules were ranked or failed."""
        return sum(one.key[2] == RANKING for one in self.arrivals)

    @property
    def rate(self) -> float:
        """Candidates a second, from the first result to the last."""
        return (self.candidates - 1) / (self.arrivals[-1].at - self.arrivals[0].at)

    @property
    def whole_rate(self) -> float:
        """Candidates a second, from the start of the run to its end."""
        return self.candidates / (self.ended - self.began)


def read_round(path: Path, *, on: bool, cpu: Cpu | None = None) -> Round:
    """The only run of a database. Raises ValueError where it has not ended, or has fewer than two results."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as found:
        began, ended, state = found.execute("SELECT started_at, ended_at, state FROM run").fetchone()
        (failed,) = found.execute("SELECT count(*) FROM measurement WHERE status = 'failed'").fetchone()
        rows = found.execute(f"{_RANKED} UNION ALL {_DEPLOYED} ORDER BY 1").fetchall()
    if state != "finished":
        raise ValueError(f"the run in {path.parent.name} ended as {state or 'nothing at all'}")
    if len(rows) < 2:
        raise ValueError(f"the run in {path.parent.name} measured nothing: give a --code with a kernel of ours")
    arrivals = tuple(Arrival(at, (names[0], names[1], names[2]), run_s or 0.0) for at, *names, run_s, _ in rows)
    medians = {arrival.key: row[-1] for arrival, row in zip(arrivals, rows, strict=True) if row[-1] is not None}
    return Round(on, began, ended, arrivals, medians, failed, cpu)
