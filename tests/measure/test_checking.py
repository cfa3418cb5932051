"""Times that no correct run can take: bytes of keys that nobody sees don't count."""

from __future__ import annotations

from engine.ir.kernel import Kernel
from engine.measure.checking import impossible_for
from engine.vocabulary import FailureKind, Target
from tests.codegen.attention_bodies import attention


def test_a_window_over_a_long_cache_may_take_less_than_reading_all_of_it() -> None:
    """Half a gigabyte of keys and values, of which one query sees a thousandth."""
    shape = (8, 1, 1 << 17, 128, "bfloat16")
    window = Kernel("attention", attention(*shape, causal=True, offset=(1 << 17) - 1, window=128))
    whole = Kernel("attention", attention(*shape))
    assert impossible_for(5.0, window, Target()) is None
    failure = impossible_for(5.0, whole, Target())
    assert failure is not None
    assert failure.kind is FailureKind.IMPOSSIBLE_TIME
    assert impossible_for(0.01, window, Target()) is not None
