"""Learn, the last step of a run: what its kernels' searches found becomes training rows, and the prior is fitted anew.

The prior that steers is chosen before a run and frozen in it: inside each kernel's search, and over all kernels of all
devices, so that results don't depend on how many devices there are or which kernel ends first. Rows enter the
reservoir when a kernel's search has ended; the fit comes after the last one, and the next program is steered by it.
A run that found little new fits nothing.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.deploy import database_rows
from engine.events import PriorRefit
from engine.ir.kernel import Kernel
from engine.prior import (
    COLUMNS,
    FASTEST,
    OTHERS,
    CheckpointError,
    ColdModel,
    Prior,
    Reservoir,
    Steering,
    group_name,
    kept_rows,
    models_path,
    refit,
    rows_path,
    save_models,
    shipped_rows,
    steering,
    training_rows,
)
from engine.store import Store, StoredRun
from engine.vocabulary import Schedule, Target

AUTO, LATEST, COLD = "auto", "latest", "cold"
LEAST_FRESH = 20
FRESH_SHARE = 0.05
"""New rows below which the prior stays as it is, in all and as a share of what it was fitted to: a fit takes seconds,
and so few rows make no better prior."""

Timed = Callable[[Kernel, int, int], Mapping[Schedule, float]]
Log = Callable[[str, str], None]
"""Takes a sentence and its level."""


def chosen_prior(store: Store, wanted: str, target: str = "", context_key: str = "") -> Prior:
    """The prior that `--prior` names: the latest learned, the cold one, or the one that steered the run of that name.

    AUTO is what steered the last run of this program in this context, so that a run that is repeated or goes on after a
    stop walks its path again; the latest where there is none. Raises ValueError for a run that isn't there, or whose
    prior is not kept any more.
    """
    if wanted == COLD:
        return ColdModel()
    kept = steering(store.path)
    if wanted == LATEST:
        return kept.latest
    if wanted == AUTO:
        return _steered_before(store, kept, target, context_key) or kept.latest
    steered = {run.id: run.prior for run in store.runs()}
    if wanted not in steered:
        raise ValueError(
            f"--prior {wanted}: no run of that name is in {store.path}; it is auto, latest, cold, or a run's name"
        )
    found = kept.version(steered[wanted])
    if found is None:
        raise ValueError(f"--prior {wanted}: that run was steered by {steered[wanted]}, which is not kept here")
    return found


def earlier_runs(store: Store, target: str, context_key: str) -> Iterator[StoredRun]:
    """The program's runs in this context, the newest first."""
    return (run for run in reversed(store.runs()) if (run.target, run.context_key) == (target, context_key))


def _steered_before(store: Store, kept: Steering, target: str, context_key: str) -> Prior | None:
    """What steered the program's last run in this context, if it is kept."""
    run = next(earlier_runs(store, target, context_key), None)
    return kept.version(run.prior) if run is not None else None


def steering_sentences(database: Path, wanted: str, prior: Prior) -> tuple[str, ...]:
    """What steers and why, for the log of a run whose prior was not named."""
    if wanted not in (AUTO, LATEST):
        return ()
    kept = steering(database)
    if prior.version != kept.latest.version:
        return (f"steered by {prior.version}, as this program's last run was; --prior latest takes what came since",)
    said = f"steered by {prior.version}: {kept.reason}"
    return (said, kept.problem) if kept.problem else (said,)


@dataclass(slots=True)
class Learner:
    """Feeds one run's results to the reservoir beside its database, from any of its threads, and fits the prior.

    `timed` answers what is known of a kernel's times in this context (us): of more than FASTEST + OTHERS candidates the
    fastest so many, and so many others.
    """

    database: Path
    context_key: str
    target: Target
    timed: Timed
    reservoir: Reservoir = field(default_factory=lambda: Reservoir(COLUMNS))
    changed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def open(
        cls,
        store: Store,
        context_key: str,
        target: Target,
        timed: Timed,
        log: Log,
    ) -> Learner:
        """With the reservoir as it was kept; one that is missing or spoiled is filled from the database again."""
        reservoir, sentence = kept_rows(store.path)
        if sentence:
            log(sentence, "warning")
        if reservoir is None:
            reservoir = database_rows(store, shipped_rows())
        return cls(store.path, context_key, target, timed, reservoir)

    def learn(self, kernel: Kernel) -> None:
        """Take in what is known of a kernel whose search has ended, in place of what was known before."""
        if kernel.foreign is not None:
            return
        timed = self.timed(kernel, FASTEST, OTHERS)
        if not timed:
            return
        matrix, log_us = training_rows(kernel, timed, self.target)
        with self._lock:
            group = group_name(kernel.key, self.context_key)
            self.changed |= self.reservoir.replace(matrix, log_us, group)

    def conclude(self, tell: Callable[[PriorRefit], None], log: Log) -> None:
        """After the last kernel: keep the rows, fit if there are enough new ones, keep the model, say how it did."""
        with self._lock:
            if not self.changed:
                return
            try:
                self.reservoir.save(rows_path(self.database))
                fresh = fresh_rows(self.reservoir, steering(self.database))
                if fresh >= max(LEAST_FRESH, FRESH_SHARE * (len(self.reservoir) - fresh)):
                    tell(refitted(self.database, self.reservoir, fresh))
            except CheckpointError as error:
                log(f"{error}; what was measured is in the database, and `emmy fit` learns from it", "warning")
            self.changed = False


def fresh_rows(reservoir: Reservoir, kept: Steering) -> int:
    """Rows that came since the newest kept model was fitted."""
    fitted = dict(kept.models[-1].groups) if kept.models else {}
    held = Counter(reservoir.groups.tolist())
    return sum(max(count - fitted.get(group, 0), 0) for group, count in held.items())


def refitted(database: Path, reservoir: Reservoir, fresh: int) -> PriorRefit:
    """Fit the reservoir's rows (at least one) and keep the model beside the database. Raises CheckpointError."""
    began = time.monotonic()
    fitted = refit(reservoir)
    if fitted is None:
        raise CheckpointError("there is no row to fit")
    kept: Steering = steering(database, shipped=False)
    others = [one for one in kept.models if one.model.version != fitted.model.version]
    save_models(models_path(database), [*others, fitted])
    found = fitted.calibration
    return PriorRefit(
        at=time.time(),
        version=fitted.model.version,
        steering=fitted.steering.version,
        trusted=found.trusted,
        rows=len(reservoir),
        fresh=fresh,
        kernels=found.kernels,
        spearman=found.spearman,
        reason=found.reason,
        wall_s=time.monotonic() - began,
    )


def fit_database(store: Store) -> PriorRefit | None:
    """Fit the prior to everything the database holds, beside what ships, and keep it; None if nothing was timed.

    Rows of kernels that only the kept reservoir has stay in it. Raises StoreError and CheckpointError.
    """
    kept, _ = kept_rows(store.path)
    reservoir = database_rows(store, kept if kept is not None else shipped_rows())
    kernels, contexts = store.kernels(), store.contexts()
    if not any(store.timed_count(kernel.key, context.key) for kernel in kernels for context in contexts):
        return None
    reservoir.save(rows_path(store.path))
    return refitted(store.path, reservoir, fresh_rows(reservoir, steering(store.path)))
