"""kill -9 at random moments: the database is whole, and what is missing is at most the candidate in flight."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

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


@pytest.mark.timeout(120)
@pytest.mark.slow
def test_a_killed_run_loses_at_most_the_candidate_in_flight(tmp_path: Path) -> None:
    builder = GraphBuilder()
    sides = [builder.input(TensorSpec.contiguous((512, 512), "bfloat16")) for _ in range(2)]
    program = Program(builder.build(builder.add("matmul", *sides)), CODE)
    tune_with(tmp_path / "t.db", FakeDevice(), program, Settings(patience=1, outer_patience=1))
    paths = (str(tmp_path / "t.db"), str(tmp_path / "log"))
    command = (sys.executable, "-m", "tests.tune.mortal_runs", *paths, str(KILLS), "11", CODE)
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lives = [json.loads(line) for line in told.splitlines()]
    assert len(lives) == KILLS
    assert all(life["intact"] and life["signal"] == 9 for life in lives), told
    assert all(life["answered"] for life in lives), told
    assert max(life["lost"] for life in lives) <= 1, told
    again = [entry for entry, count in Counter(entries(tmp_path / "log")).items() if count > 1]
    assert len(again) <= sum(life["lost"] for life in lives)
