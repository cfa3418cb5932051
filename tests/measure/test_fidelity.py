"""How pairs of times rank: against scipy, and when a kind of kernels counts as misleading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from engine.measure import fidelity, misleading
from engine.measure.fidelity import regret, spearman

times = st.integers(1, 12).map(float)


@given(st.lists(st.tuples(times, times), min_size=3, max_size=30))
def test_spearman_is_that_of_scipy(pairs: list[tuple[float, float]]) -> None:
    varies = len({a for a, _ in pairs}) > 1 and len({b for _, b in pairs}) > 1
    expected = float(spearmanr([a for a, _ in pairs], [b for _, b in pairs]).statistic) if varies else 1.0
    assert spearman(pairs) == pytest.approx(expected)


@given(st.lists(st.tuples(times, times), min_size=1, max_size=30))
def test_regret_is_never_negative(pairs: list[tuple[float, float]]) -> None:
    assert regret(pairs) >= 0.0


def test_kernels_with_few_pairs_say_nothing() -> None:
    assert fidelity([[(1.0, 1.0)] * 4]) is None
    found = fidelity([[(1.0, 1.0)] * 4, [(float(n), float(n)) for n in range(1, 7)]])
    assert found is not None
    assert (found.kernels, found.pairs, found.spearman, found.regret) == (1, 6, 1.0, 0.0)


def test_a_kind_misleads_only_where_its_pick_is_slower() -> None:
    turned = [(float(n), 100.0 - n) for n in range(30)]
    close = [(float(n), 100.0 - n / 1000) for n in range(30)]
    few = turned[:10]
    assert misleading({"turned": [turned], "close": [close], "few": [few]}) == {"turned"}
