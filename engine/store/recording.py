"""A recorded run as something that answers like a device: the times that are there, and nothing in place of others."""

from __future__ import annotations

from collections.abc import Mapping

from engine.ir.plan import Grouping
from engine.store.errors import StoreError
from engine.store.records import RecordedAssembly, StoredRun
from engine.store.store import Store
from engine.vocabulary import Context, Measurement, Regime, Schedule, Target


class Recording:
    """The rows of one context of a database. `run` picks the context; None means the latest run's.

    Raises StoreError if the database holds no run, or not the run's context.
    """

    def __init__(self, store: Store, run: StoredRun | None = None) -> None:
        run = run or store.latest_run()
        if run is None:
            raise StoreError(f"{store.path} holds no run to replay; `emmy tune` records one")
        context = store.context(run.context_key)
        if context is None:
            raise StoreError(
                f"{store.path} doesn't say on which GPU run {run.id} was recorded, so it can't be replayed"
            )
        self._store = store
        self._context = context
        self._target = store.target(run.context_key)

    @property
    def context(self) -> Context:
        return self._context

    @property
    def target(self) -> Target:
        return self._target

    def measurement(self, kernel_key: str, schedule: Schedule, regime: Regime) -> Measurement | None:
        lookup = self._store.ranking if regime is Regime.RANKING else self._store.deploy
        return lookup(kernel_key, schedule, self._context.key)

    def assembled(
        self, grouping: Grouping, schedules: Mapping[str, Schedule] | None = None, *, pdl: bool = False
    ) -> RecordedAssembly | None:
        """The recorded assembly of exactly these schedules; of any, only without `schedules`."""
        return self._store.assembled(grouping, self._context.key, schedules, pdl=pdl)
