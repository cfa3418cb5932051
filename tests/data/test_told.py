"""What the runs of the shipped demo tell, its rows hold: no journal speaks of a result that the database has lost."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from engine.data import demo_database
from engine.vocabulary import Regime, Schedule

Candidate = tuple[str, str, str]
"""A kernel, a schedule as words, and a regime."""
Result = tuple[str, float | None]
"""The status, and the time in us where it is ok."""

ROWS = (
    f"SELECT kernel_key, schedule, '{Regime.RANKING}', status, median_us FROM measurement",
    f"SELECT kernel_key, schedule, '{Regime.DEPLOY}', deploy_status, deploy_us FROM node "
    "WHERE deploy_status IS NOT NULL",
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = demo_database(tmp_path_factory.mktemp("demo"))
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        yield connection


@pytest.fixture(scope="module")
def held(demo: sqlite3.Connection) -> dict[Candidate, Result]:
    """All runs are of one context."""
    return {
        (kernel, str(Schedule.from_key(schedule)), regime): (status, us)
        for sql in ROWS
        for kernel, schedule, regime, status, us in demo.execute(sql)
    }


def told(demo: sqlite3.Connection, kind: str) -> list[dict[str, Any]]:
    """The events of a kind, of all runs."""
    return [json.loads(body) for (body,) in demo.execute("SELECT body FROM event WHERE kind = ?", (kind,))]


def test_a_result_that_was_told_has_its_row(demo: sqlite3.Connection, held: dict[Candidate, Result]) -> None:
    """Where several runs took a time, the row holds one of theirs."""
    results: dict[Candidate, set[Result]] = defaultdict(set)
    for event in told(demo, "Measured"):
        results[event["kernel"], event["schedule"], event["regime"]].add((event["status"], event.get("us")))
    assert set(results) == set(held)
    assert [place for place, row in held.items() if row not in results[place]] == []
    assert {regime for _, _, regime in held} == {Regime.RANKING, Regime.DEPLOY}
    assert {status for status, _ in held.values()} == {"ok", "failed"}


def test_what_a_finished_kernel_deploys_has_its_row(demo: sqlite3.Connection, held: dict[Candidate, Result]) -> None:
    finished = [event for event in told(demo, "KernelFinished") if event.get("best_schedule")]
    assert len(finished) > 100
    for event in finished:
        assert held[event["kernel"], event["best_schedule"], Regime.DEPLOY][0] == "ok"


def test_kernels_and_groupings_that_were_told_have_their_rows(demo: sqlite3.Connection) -> None:
    kernels = {key for (key,) in demo.execute("SELECT key FROM kernel")}
    sums = dict(demo.execute("SELECT id, sum_us FROM grouping"))
    entered = told(demo, "GroupingEntered")
    assert {event["kernel"] for event in told(demo, "KernelFound")} <= kernels
    assert {kernel for event in entered for kernel in event["kernels"]} <= kernels
    assert {event["grouping"] for event in entered} == sums.keys()
    for event in told(demo, "GroupingScored"):
        assert sums[event["grouping"]] == event["sum_us"]


def test_a_graph_that_was_told_has_its_row(demo: sqlite3.Connection) -> None:
    """Where a grouping was put together several times, the row holds one of these times."""
    rows = {(name, False): us for name, us in demo.execute("SELECT id, assembled_us FROM grouping")}
    rows |= {(name, True): us for name, us in demo.execute("SELECT id, pdl_us FROM grouping")}
    times: dict[tuple[str, bool], set[float | None]] = defaultdict(set)
    for event in told(demo, "Assembled"):
        times[event["grouping"], event.get("pdl", False)].add(event["assembled_us"])
    assert times
    assert [place for place, found in times.items() if rows[place] not in found] == []


def test_nothing_tells_where_it_was_recorded(demo: sqlite3.Connection) -> None:
    """No path, and no name of whoever recorded it: commands read as they are typed beside the database."""
    for command, author in demo.execute("SELECT command, author FROM run"):
        assert command.startswith("emmy tune ")
        assert author == ""
    ((_, _, path),) = demo.execute("PRAGMA database_list")
    whole = Path(path).read_bytes()
    assert [place for place in (b"/tmp/", b"/root", b"/home/", b"/work/", b"/Users/") if place in whole] == []
