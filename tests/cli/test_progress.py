"""The live line, the lines of steps and the milestones."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TextIO

import pytest

from engine.cli.progress import Detail, Progress, live_line, milestone_line, step_line
from engine.events import Event, Measured
from engine.snapshot import Snapshot, apply

MakeMeasured = Callable[..., Measured]


def printed(events: Sequence[Event], detail: Detail, live: TextIO) -> str:
    lines = io.StringIO()
    progress, snapshot = Progress(detail, lines, live), Snapshot()
    for event in events:
        progress.show(apply(snapshot, event), event)
        progress.paint(snapshot)
    progress.clear()
    return lines.getvalue()


def test_verbose_prints_a_line_a_step(events: list[Event]) -> None:
    lines = [line for line in printed(events, Detail.VERBOSE, io.StringIO()).splitlines() if "best" in line]
    steps = [line for line in lines if "BLOCK_M=64" in line]
    assert len(steps) == 5
    assert all(line.startswith("matmul 512x512x512 float32  ") for line in steps)
    assert "#1 " in steps[0]
    assert "20.25 us" in steps[0]
    assert "new best" in steps[0]
    assert "out of shared memory: needs 300000 bytes" in steps[1]
    assert "best   20.25 us" in steps[1]  # as it stood then, not as it ended
    assert "cached" in steps[3]
    assert "best   13.50 us" in steps[3]
    assert "deploy" in steps[4]
    assert "13.10 us      best   13.10 us" in steps[4]  # of its own regime


def test_a_time_stands_beside_the_best_of_its_own_regime(events: list[Event], measured: MakeMeasured) -> None:
    again = [
        measured(0, None, regime="deploy"),
        measured(0, 12.5, regime="deploy", best=True),
        measured(0, 14.0, regime="deploy"),
        measured(5, 13.0, best=True),
    ]
    lines = printed([*events[:8], *again], Detail.VERBOSE, io.StringIO())
    assert re.findall(r"#\d .*best +(\S+) us", lines) == ["20.25", "20.25", "13.50", "13.50", "13.00"]
    assert re.findall(r"deploy .*best +(\S+) us", lines) == ["-", "12.50", "12.50"]


def test_the_live_line_mixes_no_regimes(
    events: list[Event], measured: MakeMeasured, terminal: Callable[[int], TextIO]
) -> None:
    live = terminal(120)
    snapshot, progress = Snapshot(), Progress(Detail.NORMAL, io.StringIO(), live)
    for event in [*events[:8], measured(0, 11.11, regime="deploy", best=True)]:
        progress.show(apply(snapshot, event), event)
    progress.paint(snapshot)
    assert "15.00 us  best 13.50 us" in live.getvalue()


def test_a_pipe_gets_milestones(events: list[Event]) -> None:
    assert printed(events, Detail.NORMAL, io.StringIO()).splitlines() == [
        "matmul 512x512x512 float32: search starts",
        "matmul 512x512x512 float32  #1  new best 20.25 us  "
        "BLOCK_M=64 BLOCK_N=64 BLOCK_K=32 PRECISION=ieee NUM_WARPS=4 NUM_STAGES=3",
        "matmul 512x512x512 float32  #3  new best 13.50 us  "
        "BLOCK_M=64 BLOCK_N=64 BLOCK_K=32 PRECISION=ieee NUM_WARPS=4 NUM_STAGES=3",
        "warning: another process is on the GPU",
        "matmul 512x512x512 float32: done, best 13.10 us (patience: 10 candidates)",
    ]


@pytest.mark.parametrize("columns", [20, 80, 200])
def test_a_terminal_gets_one_line_within_its_width(
    events: list[Event], terminal: Callable[[int], TextIO], columns: int
) -> None:
    live = terminal(columns)
    assert printed(events, Detail.NORMAL, live) == ""
    painted = live.getvalue()
    assert painted.endswith("\r\x1b[K")
    assert "\n" not in painted
    assert max(len(part.removesuffix("\x1b[K")) for part in painted.split("\r")) < columns


def test_the_live_line_tells_what_matters(events: list[Event]) -> None:
    snapshot, last = Snapshot(), None
    for event in events[:8]:
        apply(snapshot, event)
        last = event if isinstance(event, Measured) else last
    assert live_line(snapshot, last) == (
        "[1/1] matmul 512x512x512 float32  #4  15.00 us  best 13.50 us  patience 1/10  1 failed  1 cached"
    )


def test_quiet_prints_nothing(events: list[Event], terminal: Callable[[int], TextIO]) -> None:
    live = terminal(80)
    assert printed(events, Detail.QUIET, live) == ""
    assert live.getvalue() == ""


def test_a_name_from_a_database_cannot_steer_the_terminal(events: list[Event]) -> None:
    found = replace(events[2], label="evil\x1b[2J\rname")
    text = printed([*events[:2], found, *events[3:]], Detail.VERBOSE, io.StringIO())
    assert "\x1b" not in text
    assert "\r" not in text
    assert "evil\\x1b[2J\\rname" in text


def test_before_a_kernel_is_found_the_state_is_the_line(events: list[Event]) -> None:
    assert live_line(Snapshot(state="capturing"), None) == "capturing"
    assert milestone_line(Snapshot(), events[1]) == ""
    assert step_line(Snapshot(), events[4], {}).startswith("a" * 24)
