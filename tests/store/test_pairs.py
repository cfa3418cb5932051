"""Pairs of ranking and deploy times, and a GPU's ceilings: each kept and read back by its context."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.data import SHIPPED_DEMO, demo_database
from engine.ir.roofline import Ceilings
from engine.store import Store
from engine.vocabulary import Context, Regime

CONTEXT = Context("GPU", "9.0", "1", "2", "3", "4")
CEILINGS = Ceilings(4000.0, (("bf16", 800.0), ("fp32", 50.0)), 8000.0, 1 << 20)


def test_the_first_ceilings_of_a_context_stay(tmp_path: Path) -> None:
    cold = Context("GPU", "9.0", "1", "2", "3", "4", cold_l2=True)
    with Store.open(tmp_path / "t.db") as store:
        for context in (CONTEXT, cold):
            store.record_context(context)
        assert store.ceilings(CONTEXT.key) is None
        store.record_ceilings(CONTEXT.key, CEILINGS)
        store.record_ceilings(CONTEXT.key, Ceilings(1.0, ()))
        store.record_context(CONTEXT)
        assert store.ceilings(CONTEXT.key) == CEILINGS
        assert store.ceilings(cold.key) is None


def test_only_what_was_timed_in_both_regimes_is_a_pair(demo: Path) -> None:
    with Store.open(demo, read_only=True) as store:
        (context,) = store.contexts()
        pairs = store.regime_pairs(context.key)
        assert pairs
        for key, of_kernel in pairs.items():
            best = store.best(key, context.key, Regime.RANKING)
            assert best is not None
            assert min(ranking for ranking, _ in of_kernel) >= (best.us or 0.0)
            assert all(deploy > 0 for _, deploy in of_kernel)
        assert store.regime_pairs("another") == {}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_database(tmp_path_factory.mktemp("demo"), SHIPPED_DEMO)
