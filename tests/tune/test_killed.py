"""Ended at random moments: the database is whole, and what is missing is at most the candidate in flight."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.ir import GraphBuilder, TensorSpec
from engine.ir.plan import Program
from engine.tune.settings import Settings

from .fake_device import FakeDevice
from .mortal_runs import entries
from .rig import tune_with

ROOT = Path(__file__).parents[2]
CODE = "torch.matmul(torch.randn(512, 512), torch.randn(512, 512))"
KILLS = 20
STATUS = {"SIGINT": 130, "SIGINT+SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}


@pytest.mark.timeout(120)
@pytest.mark.slow
def test_a_killed_run_loses_at_most_the_candidate_in_flight(tmp_path: Path) -> None:
    lives, again = ended(tmp_path, ["SIGKILL"] * KILLS, 11)
    assert all(life["status"] == -9 for life in lives), lives
    assert max(life["lost"] for life in lives) <= 1, lives
    assert again <= sum(life["lost"] for life in lives)


@pytest.mark.timeout(120)
@pytest.mark.slow
def test_a_signalled_run_ends_by_itself_and_the_next_goes_on(tmp_path: Path) -> None:
    lives, again = ended(tmp_path, [*STATUS] * 5, 5)
    assert [life["status"] for life in lives] == [STATUS[life["signals"]] for life in lives], lives
    assert not any(life["left"] for life in lives), lives
    assert max(life["lost"] for life in lives) <= 1, lives
    assert again <= sum(life["lost"] for life in lives)
    for signals in STATUS:
        times = sorted(life["exit_s"] for life in lives if life["signals"] == signals)
        print(f"{signals}: ended after {times[len(times) // 2]:.2f} s, {times[-1]:.2f} s at most")


def ended(tmp_path: Path, signals: list[str], seed: int) -> tuple[list[dict[str, Any]], int]:
    """Lives of one run that got these, as `mortal_runs` tells them, and how many candidates were measured again."""
    builder = GraphBuilder()
    sides = [builder.input(TensorSpec.contiguous((512, 512), "bfloat16")) for _ in range(2)]
    program = Program(builder.build(builder.add("matmul", *sides)), CODE)
    tune_with(tmp_path / "t.db", FakeDevice(), program, Settings(patience=1, outer_patience=1))
    paths = (str(tmp_path / "t.db"), str(tmp_path / "log"))
    command = (sys.executable, "-m", "tests.tune.mortal_runs", *paths, " ".join(signals), str(seed), CODE)
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lives = [json.loads(line) for line in told.splitlines()]
    assert len(lives) == len(signals)
    assert all(life["intact"] and life["answered"] for life in lives), told
    return lives, sum(count > 1 for count in Counter(entries(tmp_path / "log")).values())
