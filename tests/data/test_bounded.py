"""Recorded programs whose groupings differ much: leaving out those that can't win changes nothing but the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.data import SHIPPED_DEMO
from tests.bench.bounding import searched, set_ceilings, unpacked


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(SHIPPED_DEMO, tmp_path_factory.mktemp("demo"))


def test_the_best_grouping_is_the_same_with_less_work(demo: Path) -> None:
    known = set_ceilings(demo, {})
    assert known
    programs = ("torch.softmax", "F.rms_norm", "is_causal=True")
    bounded = [one for text in programs for one in searched(demo, text)]
    assert set_ceilings(demo, None) == {}
    whole = [one for text in programs for one in searched(demo, text)]
    assert len(bounded) == len(whole) == len(programs)
    for one, other in zip(bounded, whole, strict=True):
        assert one.best is not None
        assert one.best == other.best
        assert one.entered == other.entered
        assert one.bounded > other.bounded == 0
        assert one.kernels < other.kernels
    softmax, *bounded_when_recorded = zip(bounded, whole, strict=True)
    assert 2 * softmax[0].trials < softmax[1].trials
    for one, other in bounded_when_recorded:  # so that nothing is there of what was left out
        assert one.trials == other.trials > 0
