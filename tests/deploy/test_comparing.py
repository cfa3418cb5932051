"""Ratios, and intervals of windows that were taken in turns, and knobs as they are typed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.deploy.comparing import changed_schedule, compared, read_knobs
from engine.knobs import BadKnobs
from engine.vocabulary import Schedule, Verdict


def windows(us: float, seed: int, noise: float = 0.01) -> list[float]:
    draw = random.Random(seed)
    return [us * (1 + noise * (draw.random() - 0.5)) for _ in range(30)]


@given(st.floats(0.3, 3.0), st.integers(0, 20))
def test_a_ratio_is_the_peers_time_over_ours(factor: float, seed: int) -> None:
    found = compared(
        ["emmy", "again", "peer"], [windows(10.0, seed), windows(10.0, seed + 50), windows(10.0 * factor, seed + 90)]
    )
    (peer,) = found.peers
    assert peer.name == "peer"
    assert peer.difference.ratio == pytest.approx(factor, rel=0.02)
    assert peer.difference.low <= peer.difference.ratio <= peer.difference.high
    assert found.ours.low <= found.ours.us <= found.ours.high
    if abs(factor - 1) > 0.05:
        assert peer.difference.verdict is (Verdict.SLOWER if factor > 1 else Verdict.FASTER)


def test_without_peers_there_is_our_time_and_the_noise() -> None:
    found = compared(["emmy", "again"], [windows(10.0, 1), windows(10.0, 2)])
    assert found.peers == ()
    assert 0 <= found.noise.share < 0.02


def test_knobs_are_read_as_what_they_are() -> None:
    assert read_knobs("BLOCK_M=64, LOADS=pointer persistent=true,EVICTION=") == {
        "BLOCK_M": 64,
        "LOADS": "pointer",
        "PERSISTENT": True,
        "EVICTION": "",
    }


@pytest.mark.parametrize("text", ["", " ,", "BLOCK_M", "=3", "a=1,b", "BLOCK_M=1,block_m=2"])
def test_what_is_no_knob_is_one_sentence(text: str) -> None:
    with pytest.raises(BadKnobs, match=r"^[^\n]*(write NAME=value|stands twice)[^\n]*$"):
        read_knobs(text)


def test_a_schedule_with_other_knobs_or_why_there_is_none() -> None:
    schedule = Schedule.of({"BLOCK_M": 64, "NUM_WARPS": 4})
    assert changed_schedule(schedule, {"BLOCK_M": 128}) == Schedule.of({"BLOCK_M": 128, "NUM_WARPS": 4})
    assert changed_schedule(schedule, {"BLOCK_M": 64}) == "it has these values already"
    assert changed_schedule(schedule, {"ROWS": 1}) == "its schedule has no knob ROWS; it has BLOCK_M, NUM_WARPS"
