"""A kernel that is far slower than predicted sends the outer search to groupings without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.capture import TargetOptions
from engine.events import Event, GroupingEntered, GroupingScored
from engine.ir.kernel import Kernel
from engine.prior import ColdModel, score_options
from engine.tune.settings import Settings
from engine.vocabulary import Option, Schedule, Target
from tests.capture.models import captured

from .fake_device import FakeDevice
from .rig import program_of, tune_with

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.slow
def test_another_way_to_compute_a_slow_kernel_is_entered_and_wins(tmp_path: Path) -> None:
    """Attention takes twenty times what the model says, and every other kernel what it says."""
    predicted: dict[str, float] = {}

    def us(kernel: Kernel, schedule: Schedule) -> float:
        if kernel.key not in predicted:
            (speed,) = score_options(ColdModel(), kernel, Target(), {}, [Option(())])
            predicted[kernel.key] = 1.0 / speed
        return predicted[kernel.key] * (20.0 if kernel.family == "attention" else 1.0)

    layer = program_of(captured("qwen3", TargetOptions(0, "bfloat16", 128, 1), hidden_size=128))
    events = list[Event]()
    tune_with(tmp_path / "db", FakeDevice(us), layer, Settings(patience=2), events=events)
    decisions = {event.grouping: event.decisions for event in events if isinstance(event, GroupingEntered)}
    scored = [event for event in events if isinstance(event, GroupingScored) and event.sum_us is not None]
    best = min(scored, key=lambda event: event.sum_us or 0.0)
    assert "FUSE_ATTENTION_0=fused" in decisions[scored[0].grouping]
    assert "FUSE_ATTENTION_0=apart" in decisions[best.grouping]
