"""A rate between two sizes holds neither the launch nor what the L2 keeps; what is launched is real, on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from engine.runtime import ceilings

CPU = torch.device("cpu")
LAUNCH_US, KEPT_BYTES, GBS = 3.0, 60 << 20, 4000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of a launch, which is the count of its bytes here."""
    monkeypatch.setattr(ceilings, "_best_us", lambda moved: LAUNCH_US + (moved - KEPT_BYTES) / (GBS * 1e3))


def bytes_alone(moved: int, device: torch.device) -> Any:
    return moved


def test_neither_the_launch_nor_the_l2_counts(clock: None) -> None:
    less, more = ceilings.FAR_BYTES
    assert ceilings._rate(bytes_alone, less, more, CPU) == pytest.approx(GBS)


def test_times_that_make_no_sense_give_the_rate_of_the_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "_best_us", lambda moved: 100.0)
    assert ceilings._rate(bytes_alone, 1 << 20, 1 << 30, CPU) == pytest.approx((1 << 30) / 1e5)


def test_a_sum_in_the_l2_is_rated_by_all_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits as long for little as for much, so a difference of two sizes would be no time of theirs."""
    moved, us = 22 << 20, 5.0
    monkeypatch.setattr(ceilings, "_best_us", lambda of: LAUNCH_US if of == "launch" else us)
    monkeypatch.setattr(ceilings, "_scaling", lambda size, device: "launch")
    monkeypatch.setattr(ceilings, "_summing", lambda size, device, rows: "sum")
    assert ceilings._near_read_gbs(moved, CPU) == pytest.approx(moved / ((us - LAUNCH_US) * 1e3))
    us = LAUNCH_US / 2
    assert ceilings._near_read_gbs(moved, CPU) == pytest.approx(moved / (us * 1e3))


def test_copies_and_sums_run(monkeypatch: pytest.MonkeyPatch) -> None:
    sums: list[torch.Tensor] = []
    copies: list[torch.Tensor] = []
    real_sum, real_mul = torch.sum, torch.mul

    def watched(real: Callable[..., torch.Tensor], kept: list[torch.Tensor]) -> Callable[..., torch.Tensor]:
        def call(source: torch.Tensor, *rest: Any, out: torch.Tensor) -> torch.Tensor:
            kept.append(source)
            return real(source, *rest, out=out)

        return call

    def best_us(launch: Callable[[], None]) -> float:
        start = time.perf_counter()
        launch()
        return (time.perf_counter() - start) * 1e6

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch, "sum", watched(real_sum, sums))
    monkeypatch.setattr(torch, "mul", watched(real_mul, copies))
    monkeypatch.setattr(ceilings, "_best_us", best_us)
    less, more = 1 << 20, 1 << 22
    assert min(ceilings._copy_and_read_gbs(less, more, CPU)) > 0
    assert {one.nbytes for one in sums} == {less, more}, "a sum reads all the bytes that it is said to move"
    assert {2 * one.nbytes for one in copies} == {less, more}, "a copy reads half of them"
    assert ceilings._near_read_gbs(more, CPU) > 0
