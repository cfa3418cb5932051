"""What a database's prior is worth: predicted against measured, rank of winners, regret, what it was trained on.

A model that was fitted beside the database is judged on kernels that were held out then, never on its own training
rows. Where none was fitted yet, the one that ships (else the cold model) is judged on what was measured here, without
the kernels that it was fitted to: of a kernel with very many candidates, on some that are evenly spread over all in
the order of their times, so that the ranks of a million take as long to judge as those of some thousand. Nothing is
fitted here and scikit-learn is not loaded, so a screen may ask.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from engine.deploy.database_rows import measured_kernels
from engine.ir.kernel import Kernel
from engine.prior import (
    ColdModel,
    FittedModel,
    Ranking,
    Steering,
    features,
    group_name,
    ranking,
    steering,
)
from engine.store import Store

Column = NDArray[np.float64]

PAIRS_SHOWN = 4_000
JUDGED = 4_000
"""Candidates of one kernel that a prior is judged on."""
JUDGED_IN_ALL = 100_000
LEAST_JUDGED = 200
"""The same of all kernels together, and of one where they are many."""


@dataclass(frozen=True, slots=True)
class KernelTrust:
    """How well the prior ranks one kernel in one context. `label`, `family`, `shape` and `gpu` are "" if unknown here.

    Regrets are shares of the best time: 0.05 = 5 % slower than the fastest measured. `cold` is the cold model's
    ranking of the same rows; it equals `learned` where that model is the cold one. `measured` says out of how many
    timed candidates the `rows` are; None where it is not known.
    """

    kernel: str
    context: str
    label: str
    family: str
    shape: str
    gpu: str
    rows: int
    learned: Ranking
    cold: Ranking | None
    measured: int | None = None


@dataclass(frozen=True, slots=True)
class FamilyTrust:
    """Means over the kernels of a family; `winner_rank` is a geometric mean."""

    family: str
    kernels: int
    spearman: float
    winner_rank: float
    regret_1: float
    regret_10: float


@dataclass(frozen=True, slots=True)
class PredictedPair:
    """One measured candidate and what the prior had said of it, in us."""

    kernel: str
    family: str
    predicted_us: float
    measured_us: float

    @property
    def residual(self) -> float:
        """log2(measured / predicted): 1 = twice as slow as predicted."""
        return math.log2(self.measured_us / self.predicted_us)


@dataclass(frozen=True, slots=True)
class TrainedKernel:
    """A kernel the model was fitted to, with its rows: candidates, and branches above them."""

    kernel: str
    context: str
    label: str
    family: str
    shape: str
    gpu: str
    rows: int


@dataclass(frozen=True, slots=True)
class PriorReport:
    """`version` steers the next run. `learned` is the newest fitted model's version, "" if there is none; `trusted`
    says whether it steers, `reason` why or why not. `problem` is a sentence if a file could not be used.

    `importance` is each column's share of what the trees gained. `spearman` is the mean over `kernels`. `shipped` says
    that the model came with the product: `trained_on` and `reason` are about other kernels, `kernels` and `pairs` about
    those measured here that it was not fitted to.
    """

    version: str
    learned: str
    trusted: bool
    reason: str
    spearman: float | None
    cold_spearman: float | None
    rows: int
    kernels: tuple[KernelTrust, ...]
    families: tuple[FamilyTrust, ...]
    pairs: tuple[PredictedPair, ...]
    importance: tuple[tuple[str, float], ...]
    trained_on: tuple[TrainedKernel, ...]
    shipped: bool = False
    problem: str = ""

    @property
    def residuals(self) -> tuple[float, ...]:
        """log2(measured / predicted) of every pair."""
        return tuple(pair.residual for pair in self.pairs)

    @property
    def sampled(self) -> tuple[int, int] | None:
        """On how many candidates of how many the kernels here were judged; None where it was on all of them."""
        some = [one for one in self.kernels if one.measured is not None]
        rows, measured = sum(one.rows for one in some), sum(one.measured or 0 for one in some)
        return (rows, measured) if rows < measured else None


def prior_report(store: Store) -> PriorReport:
    """The report on the prior that steers the next run of this database. Raises StoreError."""
    *_, report = report_steps(store)
    assert report is not None
    return report


def report_steps(store: Store) -> Iterator[PriorReport | None]:
    """None after each kernel that was judged, and the report in the end: who asks may do something else in between.

    Raises StoreError.
    """
    kept = steering(store.path)
    names = _Names(store)
    if kept.models and kept.own:
        yield _learned_report(kept.models[-1], names, kept.problem)
    else:
        yield from _unseen_steps(store, names, kept)


class _Names:
    """What is known here of kernels and contexts that rows name."""

    def __init__(self, store: Store) -> None:
        self.kernels: Mapping[str, Kernel] = {kernel.key: kernel for kernel in store.kernels()}
        self.gpus: Mapping[str, str] = {context.key: context.gpu for context in store.contexts()}

    def of(self, group: str) -> tuple[str, str, str, str, str, str]:
        """Kernel, context, label, family, shape, GPU."""
        kernel, _, context = group.partition("@")
        known = self.kernels.get(kernel)
        about = (known.label, known.family, known.shape_text) if known else ("", "", "")
        return (kernel, context, *about, self.gpus.get(context, ""))


def _learned_report(fitted: FittedModel, names: _Names, problem: str) -> PriorReport:
    kernels = tuple(
        KernelTrust(*names.of(one.group), one.rows, one.learned, one.cold) for one in fitted.calibration.held_out
    )
    pairs = fitted.pairs
    groups = [names.of(str(group)) for group in pairs.groups]
    return PriorReport(
        version=fitted.steering.version,
        learned=fitted.model.version,
        trusted=fitted.calibration.trusted,
        reason=fitted.calibration.reason,
        spearman=fitted.calibration.spearman,
        cold_spearman=fitted.calibration.cold_spearman,
        rows=fitted.model.rows,
        kernels=kernels,
        families=_families(kernels),
        pairs=_pairs(groups, pairs.predicted.tolist(), pairs.measured.tolist()),
        importance=fitted.model.importance(),
        trained_on=tuple(TrainedKernel(*names.of(group), rows) for group, rows in fitted.groups),
        problem=problem,
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """The rows of one kernel in one context: `about` is what `_Names.of` says of it; times are in ln us."""

    about: tuple[str, str, str, str, str, str]
    predicted: Column
    measured: Column


def _unseen_steps(store: Store, names: _Names, kept: Steering) -> Iterator[PriorReport | None]:
    """Of a prior that was not fitted here, on the kernels that it has never seen."""
    shipped = kept.models[-1] if kept.models else None
    seen = {group.partition("@")[0] for group, _ in shipped.groups} if shipped else set()
    unseen = [found for found in measured_kernels(store) if found[0].key not in seen]
    most = min(JUDGED, max(LEAST_JUDGED, JUDGED_IN_ALL // max(1, len(unseen))))
    kernels: list[KernelTrust] = []
    judged: list[_Judged] = []
    for kernel, context, target in unseen:
        sample = store.timed_evenly(kernel.key, context, most)
        if sample.times:
            about = names.of(group_name(kernel.key, context))
            matrix = features(kernel, [schedule.as_dict() for schedule in sample.times], target)
            rows = _Judged(about, kept.latest.predict(matrix), np.log(list(sample.times.values())))
            judged.append(rows)
            found = ranking(rows.predicted, rows.measured)
            if found is not None:
                cold = ranking(ColdModel().predict(matrix), rows.measured)
                kernels.append(KernelTrust(*about, len(matrix), found, cold, sample.of))
        yield None
    cold_ranks = [one.cold.spearman for one in kernels if one.cold is not None]
    yield PriorReport(
        version=kept.latest.version,
        learned=shipped.model.version if shipped else "",
        trusted=shipped is not None and shipped.calibration.trusted,
        reason=kept.reason,
        spearman=fmean(one.learned.spearman for one in kernels) if kernels else None,
        cold_spearman=fmean(cold_ranks) if cold_ranks else None,
        rows=shipped.model.rows if shipped else 0,
        kernels=tuple(kernels),
        families=_families(kernels),
        pairs=_shown_pairs(judged),
        importance=shipped.model.importance() if shipped else (),
        trained_on=tuple(TrainedKernel(*names.of(group), rows) for group, rows in shipped.groups) if shipped else (),
        shipped=shipped is not None,
        problem=kept.problem,
    )


def _shown_pairs(judged: Sequence[_Judged]) -> tuple[PredictedPair, ...]:
    """Every so many of all rows, at most PAIRS_SHOWN."""
    step = -(-sum(len(rows.measured) for rows in judged) // PAIRS_SHOWN) or 1
    pairs: list[PredictedPair] = []
    before = 0
    for rows in judged:
        every = slice(-before % step, None, step)
        predicted, measured = rows.predicted[every].tolist(), rows.measured[every].tolist()
        pairs += _pairs([rows.about] * len(measured), predicted, measured)
        before += len(rows.measured)
    return tuple(pairs)


def _families(kernels: Sequence[KernelTrust]) -> tuple[FamilyTrust, ...]:
    found = []
    for family in sorted({kernel.family for kernel in kernels}):
        ranks = [kernel.learned for kernel in kernels if kernel.family == family]
        found.append(
            FamilyTrust(
                family,
                len(ranks),
                fmean(one.spearman for one in ranks),
                math.exp(fmean(math.log(one.winner_rank) for one in ranks)),
                fmean(one.regrets[0] for one in ranks),
                fmean(one.regrets[1] for one in ranks),
            )
        )
    return tuple(found)


def _pairs(
    groups: Sequence[tuple[str, str, str, str, str, str]], predicted: Sequence[float], measured: Sequence[float]
) -> tuple[PredictedPair, ...]:
    return tuple(
        PredictedPair(kernel, family, math.exp(guess), math.exp(us))
        for (kernel, _, _, family, _, _), guess, us in zip(groups, predicted, measured, strict=True)
    )
