"""The flush's kernels: what they write, and with which priority the L2 keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.runtime import compile_source
from engine.runtime.flush import BLOCK, flush_sources
from engine.vocabulary import Target

BLOCKS = 7680


def test_twice_the_l2_is_written_first_and_its_latter_half_again() -> None:
    everything, again = flush_sources(BLOCKS)
    assert everything.grid == (2 * BLOCKS, 1, 1)
    assert again.grid == (BLOCKS, 1, 1)
    assert f"out0 + {BLOCKS * BLOCK} + index" in again.text


def test_nothing_outlasts_the_first_and_nothing_is_outlasted_by_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    for source, policy in zip(flush_sources(BLOCKS), ("evict_last", "evict_first"), strict=True):
        ptx = compile_source(source, Target(), tmp_path).kernel.asm["ptx"]
        stores = [line for line in ptx.splitlines() if "st.global" in line]
        assert f"createpolicy.fractional.L2::{policy}.b64" in ptx
        assert len(stores) == 4
        assert all("L2::cache_hint.v4" in line for line in stores)
