"""Recorded landscapes (H200) hold the spaces to what experts need: the best is offered, what can't be built isn't, and
the analytic model, which has measured nothing, names a schedule near the best early.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from engine.codegen import offered_schedules
from engine.ir import Kernel
from engine.knobs import KNOBS
from engine.store import Store
from engine.vocabulary import KnobValue
from tests.bench.landscape import recorded_landscape

RECORDED = ("landscapes_h200.db.gz", "layer_h200.db.gz")
LEAST = 60
"""Recorded candidates from which a kernel's order says something."""
Setting = frozenset[tuple[str, KnobValue]]


@dataclass(frozen=True)
class Recording:
    """Candidates that were measured, in the order in which the analytic model would try them; times in us, NaN where
    one failed."""

    name: str
    kernel: Kernel
    settings: tuple[Setting, ...]
    us: NDArray[np.float64]
    offered: frozenset[Setting]

    def still_offered(self) -> Recording:
        kept = [place for place, setting in enumerate(self.settings) if setting in self.offered]
        return replace(self, settings=tuple(self.settings[place] for place in kept), us=self.us[kept])

    @property
    def spearman(self) -> float:
        timed = self.us[np.isfinite(self.us)]
        return float(spearmanr(np.arange(len(timed)), timed).statistic)

    def regret(self, tried: int) -> float:
        """Per cent above the best after so many candidates."""
        return float(100 * (np.nanmin(self.us[:tried]) / np.nanmin(self.us) - 1))


def setting(knobs: dict[str, KnobValue]) -> Setting:
    """A schedule without what is off: a recording may lack a knob that came later, or hold one that is gone."""
    return frozenset((name, value) for name, value in knobs.items() if name in KNOBS and value != KNOBS[name].off)


def recordings(path: Path) -> Iterator[Recording]:
    with Store.open(path, read_only=True) as store:
        for found in store.variants("", 1):
            if found.ok < LEAST:
                continue
            kernel = store.kernel(found.kernel)
            land = recorded_landscape(store, f"{found.label} {found.shape}", kernel, found.context)
            assert land.predicted is not None
            order = np.argsort(land.predicted, kind="stable")
            offered = frozenset(setting(s.as_dict()) for s in offered_schedules(kernel, store.target(found.context)))
            settings = tuple(setting(land.candidates[place]) for place in order)
            yield Recording(land.name, kernel, settings, land.us[order], offered)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    found: list[Recording] = []
    for name in RECORDED:
        path = tmp_path_factory.mktemp("recorded") / name.removesuffix(".gz")
        path.write_bytes(gzip.decompress(Path(__file__).with_name(name).read_bytes()))
        found += recordings(path)
    assert len(found) > 20
    return found


def test_the_best_that_was_measured_is_offered(recorded: list[Recording]) -> None:
    for one in recorded:
        best = one.settings[int(np.nanargmin(one.us))]
        assert best in one.offered, f"{one.name}: {sorted(best)}"


def test_hardly_anything_that_is_offered_fails(recorded: list[Recording]) -> None:
    still = [one.still_offered() for one in recorded]
    failed = sum(int(np.isnan(one.us).sum()) for one in still)
    assert sum(len(one.us) for one in still) > 10_000
    assert failed <= sum(len(one.us) for one in still) / 1000


def test_the_analytic_model_names_a_near_best_early(recorded: list[Recording]) -> None:
    still = [one.still_offered() for one in recorded]
    told = "\n".join(f"{one.name}: {one.spearman:.2f}, {one.regret(20):.1f} %, {one.regret(50):.1f} %" for one in still)
    assert max(one.regret(20) for one in still) <= 11, told
    assert max(one.regret(50) for one in still) <= 4, told
    assert np.mean([one.regret(20) for one in still]) <= 2, told


def test_the_analytic_model_orders_what_was_measured(recorded: list[Recording]) -> None:
    still = [one.still_offered() for one in recorded]
    assert min(one.spearman for one in still) > 0.25
    for family, least in (("contraction", 0.7), ("attention", 0.7), ("rowwise", 0.5), ("pointwise", 0.7)):
        orders = [one.spearman for one in still if one.kernel.family == family]
        assert np.mean(orders) > least, f"{family}: {orders}"


def test_rows_are_not_walked_by_what_is_offered(recorded: list[Recording]) -> None:
    """As measured: such programs were slower in each kernel."""
    for one in recorded:
        walked = np.array([("PERSISTENT", True) in each for each in one.settings])
        if one.kernel.family == "rowwise" and walked.any():
            assert np.nanmin(one.us[walked]) > 1.02 * np.nanmin(one.us)
            assert not any(("PERSISTENT", True) in each for each in one.offered)
