"""Timing in turns on the GPU itself: every launch gets a window a round, and the order of two kernels is what it is."""

from __future__ import annotations

from statistics import median

import torch

from engine.runtime import TimingPlan, probe_us, time_in_turns

PLAN = TimingPlan(window_ms=0.8, windows=20, warmup_ms=20.0)


def test_the_longer_of_two_copies_takes_longer_in_every_order() -> None:
    source = torch.randn(1 << 24, device="cuda")
    out = torch.empty_like(source)

    def whole() -> None:
        torch.mul(source, 1.5, out=out)

    def most() -> None:
        torch.mul(source[: 15 << 20], 1.5, out=out[: 15 << 20])

    for launches in ((whole, most), (most, whole)):
        for launch in launches:
            launch()
        torch.cuda.synchronize()
        samples = time_in_turns(launches, PLAN, [probe_us(launch) for launch in launches], 0)
        assert [len(of_one) for of_one in samples] == [PLAN.windows, PLAN.windows]
        of_whole, of_most = samples if launches[0] is whole else samples[::-1]
        print(f"\nwhole {median(of_whole):.2f} us, 15/16 of it {median(of_most):.2f} us")
        assert 0.85 < median(of_most) / median(of_whole) < 1.0
