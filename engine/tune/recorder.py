"""Where a run's results go and where known ones come from: a database that is written, or a replay that only reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from engine.events import Event
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure import AssembledResult
from engine.store import NodeRecord, Store
from engine.vocabulary import Measurement, Schedule


class Recorder(Protocol):
    """`ranking`, `deploy` and `assembled` answer with what is known already, marked as cached."""

    def ranking(self, kernel: Kernel, schedule: Schedule) -> Measurement | None: ...

    def deploy(self, kernel: Kernel, schedule: Schedule) -> Measurement | None: ...

    def record(self, measurement: Measurement, *, run: str, trial: int, nodes: Sequence[NodeRecord]) -> None: ...

    def nodes(self, run: str, nodes: Sequence[NodeRecord]) -> None: ...

    def events(self, run: str, events: Sequence[Event]) -> None: ...

    def grouping(self, run: str, grouping: Grouping) -> str: ...

    def score(self, grouping: str, sum_us: float | None, reason: str) -> None: ...

    def known_assembled(self, grouping: Grouping, schedules: Mapping[str, Schedule]) -> AssembledResult | None: ...

    def assembled(self, grouping: str, result: AssembledResult, schedules: Mapping[str, Schedule]) -> None: ...


class StoreRecorder:
    """Serves from the database and writes to it, one committed row at a time."""

    def __init__(self, store: Store, context_key: str) -> None:
        self._store = store
        self._context = context_key
        self._known_kernels: set[str] = set()

    def ranking(self, kernel: Kernel, schedule: Schedule) -> Measurement | None:
        return self._store.ranking(kernel.key, schedule, self._context)

    def deploy(self, kernel: Kernel, schedule: Schedule) -> Measurement | None:
        return self._store.deploy(kernel.key, schedule, self._context)

    def record(self, measurement: Measurement, *, run: str, trial: int, nodes: Sequence[NodeRecord]) -> None:
        self._store.record_measurement(measurement, run=run, trial=trial, nodes=nodes)

    def nodes(self, run: str, nodes: Sequence[NodeRecord]) -> None:
        self._store.record_nodes(run, nodes)

    def events(self, run: str, events: Sequence[Event]) -> None:
        self._store.record_events(run, events)

    def grouping(self, run: str, grouping: Grouping) -> str:
        for kernel, _ in grouping.kernel_counts().values():
            if kernel.key not in self._known_kernels:
                self._store.record_kernel(kernel)
                self._known_kernels.add(kernel.key)
        return self._store.record_grouping(run, grouping)

    def score(self, grouping: str, sum_us: float | None, reason: str) -> None:
        self._store.score_grouping(grouping, sum_us, reason)

    def known_assembled(self, grouping: Grouping, schedules: Mapping[str, Schedule]) -> AssembledResult | None:
        known = self._store.assembled(grouping, self._context, schedules)
        return None if known is None else AssembledResult(known.timing, known.error, known.failure)

    def assembled(self, grouping: str, result: AssembledResult, schedules: Mapping[str, Schedule]) -> None:
        self._store.record_assembled(grouping, result.timing, result.error, result.failure, schedules)


class ReplayRecorder:
    """Knows nothing and keeps nothing: the recording itself answers as the device, and is never written."""

    def __init__(self) -> None:
        self._groupings = 0

    def ranking(self, kernel: Kernel, schedule: Schedule) -> Measurement | None:
        return None

    def deploy(self, kernel: Kernel, schedule: Schedule) -> Measurement | None:
        return None

    def record(self, measurement: Measurement, *, run: str, trial: int, nodes: Sequence[NodeRecord]) -> None:
        return None

    def nodes(self, run: str, nodes: Sequence[NodeRecord]) -> None:
        return None

    def events(self, run: str, events: Sequence[Event]) -> None:
        return None

    def grouping(self, run: str, grouping: Grouping) -> str:
        self._groupings += 1
        return f"{run}/{self._groupings}"

    def score(self, grouping: str, sum_us: float | None, reason: str) -> None:
        return None

    def known_assembled(self, grouping: Grouping, schedules: Mapping[str, Schedule]) -> AssembledResult | None:
        return None

    def assembled(self, grouping: str, result: AssembledResult, schedules: Mapping[str, Schedule]) -> None:
        return None
