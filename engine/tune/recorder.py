"""Where a run's results go and where known ones come from: a database that is written, or a replay that only reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from engine.deploy import schedules_to_try
from engine.events import Compared, ComparedInPlace, Event
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.ir.roofline import Ceilings
from engine.measure import AssembledResult
from engine.store import AcceptanceRow, NodeRecord, Store
from engine.tune.full_disk import Answer, FullDisk
from engine.vocabulary import Measurement, Regime, Schedule


class Recorder(Protocol):
    """`ranking`, `deploy`, `compared`, `compared_in_place` and `known_assembled` answer with what is known already."""

    def ranking(self, kernel: Kernel, schedule: Schedule) -> Measurement | None: ...

    def deploy(self, kernel: Kernel, schedule: Schedule) -> Measurement | None: ...

    def compared(self, kernel: Kernel) -> Compared | None: ...

    def compared_in_place(self, graphs: str) -> ComparedInPlace | None: ...

    def recorded_in_place(self, grouping: Grouping, *, pdl: bool) -> Mapping[str, Schedule]:
        """The schedules that the recorded run ended with in the graph; {} for a run that finds its own."""
        ...

    def timed(self, kernel: Kernel) -> Mapping[Schedule, float]: ...

    def timed_sample(self, kernel: Kernel, fastest: int, others: int) -> Mapping[Schedule, float]:
        """`timed`, of very many candidates only the fastest so many, and so many others."""
        ...

    def suggested(self, kernel: Kernel) -> Sequence[Schedule]:
        """What a search of the kernel tries first."""
        ...

    def record(self, measurement: Measurement, *, run: str, trial: int, nodes: Sequence[NodeRecord]) -> None: ...

    def repeat(self, nodes: Sequence[NodeRecord]) -> None:
        """Write the nodes of what the database knew, after the next events."""
        ...

    def nodes(self, run: str, nodes: Sequence[NodeRecord]) -> None: ...

    def events(self, run: str, events: Sequence[Event]) -> None: ...

    def ceilings(self, ceilings: Ceilings) -> None: ...

    def controls(self, files: Sequence[tuple[str, bytes]], said: Sequence[AcceptanceRow]) -> None:
        """Keep controls files of ptxas, names and bytes, and who accepted them."""
        ...

    def controls_file(self, sha256: str) -> bytes | None:
        """The bytes of a kept controls file."""
        ...

    def same_kernels(self, kernel: Kernel) -> Sequence[tuple[Kernel, Schedule]]:
        """The recorded kernels of its family and label in other shapes, with its best schedule without controls."""
        ...

    def grouping(self, run: str, grouping: Grouping) -> str: ...

    def score(self, grouping: str, sum_us: float | None, reason: str) -> None: ...

    def known_assembled(
        self, grouping: Grouping, schedules: Mapping[str, Schedule], *, pdl: bool
    ) -> AssembledResult | None: ...

    def assembled(
        self,
        grouping: str,
        result: AssembledResult,
        schedules: Mapping[str, Schedule],
        *,
        pdl: bool,
    ) -> None: ...


class StoreRecorder:
    """Serves from the database and writes to it, one committed row at a time, from one thread at a time.

    With a `disk`, a write that finds no space waits for some; without, it raises StoreFull.
    """

    def __init__(self, store: Store, context_key: str, disk: FullDisk | None = None) -> None:
        self._store = store
        self._context = context_key
        self._disk = disk
        self._lock = threading.Lock()
        self._known_kernels: set[str] = set()
        self._repeated: dict[str, NodeRecord] = {}

    def ranking(self, kernel: Kernel, schedule: Schedule) -> Measurement | None:
        with self._lock:
            return self._store.ranking(kernel.key, schedule, self._context)

    def deploy(self, kernel: Kernel, schedule: Schedule) -> Measurement | None:
        with self._lock:
            return self._store.deploy(kernel.key, schedule, self._context)

    def compared(self, kernel: Kernel) -> Compared | None:
        with self._lock:
            return self._store.compared(kernel.key, self._context)

    def compared_in_place(self, graphs: str) -> ComparedInPlace | None:
        with self._lock:
            return self._store.compared_in_place(graphs, self._context)

    def recorded_in_place(self, grouping: Grouping, *, pdl: bool) -> Mapping[str, Schedule]:
        return {}

    def timed(self, kernel: Kernel) -> Mapping[Schedule, float]:
        """Every time that is known of the kernel in this context, in us."""
        with self._lock:
            return self._store.timed(kernel.key, self._context)

    def timed_sample(self, kernel: Kernel, fastest: int, others: int) -> Mapping[Schedule, float]:
        with self._lock:
            return self._store.timed_sample(kernel.key, self._context, fastest, others)

    def suggested(self, kernel: Kernel) -> Sequence[Schedule]:
        """The kernel's pin, and schedules that were pinned or measured elsewhere: what a search tries first."""
        with self._lock:
            return schedules_to_try(kernel, self._store, self._context)

    def record(self, measurement: Measurement, *, run: str, trial: int, nodes: Sequence[NodeRecord]) -> None:
        """Write what was measured. Of what the database knew, only the nodes are new: they go with the next events."""
        if measurement.cached:
            self.repeat(nodes)
            return
        self._write(lambda: self._store.record_measurement(measurement, run=run, trial=trial, nodes=nodes))
        self._outdated(nodes)

    def repeat(self, nodes: Sequence[NodeRecord]) -> None:
        with self._lock:
            self._repeated.update((node.node, node) for node in nodes)

    @property
    def repeated(self) -> tuple[NodeRecord, ...]:
        """The nodes that wait for the next events."""
        with self._lock:
            return tuple(self._repeated.values())

    def nodes(self, run: str, nodes: Sequence[NodeRecord]) -> None:
        self._write(lambda: self._store.record_nodes(run, nodes))
        self._outdated(nodes)

    def events(self, run: str, events: Sequence[Event]) -> None:
        """Write events, then the nodes that wait: what an opening says of a node is older than they are."""
        self._write(lambda: self._store.record_events(run, events))
        with self._lock:
            waiting, self._repeated = tuple(self._repeated.values()), {}
        if waiting:
            self._write(lambda: self._store.record_nodes(run, waiting))

    def _outdated(self, nodes: Sequence[NodeRecord]) -> None:
        """These nodes were written: what waits of them is older."""
        with self._lock:
            for node in nodes:
                self._repeated.pop(node.node, None)

    def ceilings(self, ceilings: Ceilings) -> None:
        self._write(lambda: self._store.record_ceilings(self._context, ceilings))

    def controls(self, files: Sequence[tuple[str, bytes]], said: Sequence[AcceptanceRow]) -> None:
        self._write(lambda: self._store.record_controls(files, said))

    def controls_file(self, sha256: str) -> bytes | None:
        with self._lock:
            kept = self._store.controls_file(sha256)
        return kept.data if kept is not None else None

    def same_kernels(self, kernel: Kernel) -> Sequence[tuple[Kernel, Schedule]]:
        found = []
        with self._lock:
            for other in self._store.kernels():
                if (other.family, other.label) != (kernel.family, kernel.label) or other.key == kernel.key:
                    continue
                best = [
                    self._store.best_without_controls(other.key, self._context, regime)
                    for regime in (Regime.DEPLOY, Regime.RANKING)
                ]
                found += [(other, one.schedule) for one in best if one is not None][:1]
        return found

    def grouping(self, run: str, grouping: Grouping) -> str:
        return self._write(lambda: self._grouping(run, grouping))

    def score(self, grouping: str, sum_us: float | None, reason: str) -> None:
        self._write(lambda: self._store.score_grouping(grouping, sum_us, reason))

    def known_assembled(
        self, grouping: Grouping, schedules: Mapping[str, Schedule], *, pdl: bool
    ) -> AssembledResult | None:
        with self._lock:
            known = self._store.assembled(grouping, self._context, schedules, pdl=pdl)
        return None if known is None else AssembledResult(known.timing, known.error, known.failure)

    def assembled(
        self,
        grouping: str,
        result: AssembledResult,
        schedules: Mapping[str, Schedule],
        *,
        pdl: bool,
    ) -> None:
        self._write(
            lambda: self._store.record_assembled(
                grouping, result.timing, result.error, result.failure, schedules, pdl=pdl
            )
        )

    def _grouping(self, run: str, grouping: Grouping) -> str:
        for kernel, _ in grouping.kernel_counts().values():
            if kernel.key not in self._known_kernels:
                self._store.record_kernel(kernel)
                self._known_kernels.add(kernel.key)
        return self._store.record_grouping(run, grouping)

    def _write(self, write: Callable[[], Answer]) -> Answer:
        with self._lock:
            return self._disk.outlast(write) if self._disk is not None else write()


class ReplayRecorder:
    """Keeps nothing, and knows only how the recorded run chose: the recording itself answers as the device."""

    def __init__(self, store: Store, context_key: str) -> None:
        self._store = store
        self._context = context_key
        self._groupings = 0

    def ranking(self, kernel: Kernel, schedule: Schedule) -> Measurement | None:
        return None

    def deploy(self, kernel: Kernel, schedule: Schedule) -> Measurement | None:
        return None

    def compared(self, kernel: Kernel) -> Compared | None:
        return self._store.compared(kernel.key, self._context)

    def compared_in_place(self, graphs: str) -> ComparedInPlace | None:
        return self._store.compared_in_place(graphs, self._context)

    def recorded_in_place(self, grouping: Grouping, *, pdl: bool) -> Mapping[str, Schedule]:
        found = self._store.assembled(grouping, self._context, pdl=pdl)
        return found.schedules if found is not None else {}

    def timed(self, kernel: Kernel) -> Mapping[Schedule, float]:
        return self._store.timed(kernel.key, self._context)

    def timed_sample(self, kernel: Kernel, fastest: int, others: int) -> Mapping[Schedule, float]:
        return self._store.timed_sample(kernel.key, self._context, fastest, others)

    def suggested(self, kernel: Kernel) -> Sequence[Schedule]:
        return ()

    def record(self, measurement: Measurement, *, run: str, trial: int, nodes: Sequence[NodeRecord]) -> None:
        return None

    def repeat(self, nodes: Sequence[NodeRecord]) -> None:
        return None

    def nodes(self, run: str, nodes: Sequence[NodeRecord]) -> None:
        return None

    def events(self, run: str, events: Sequence[Event]) -> None:
        return None

    def ceilings(self, ceilings: Ceilings) -> None:
        return None

    def controls(self, files: Sequence[tuple[str, bytes]], said: Sequence[AcceptanceRow]) -> None:
        return None

    def controls_file(self, sha256: str) -> bytes | None:
        return None

    def same_kernels(self, kernel: Kernel) -> Sequence[tuple[Kernel, Schedule]]:
        return ()

    def grouping(self, run: str, grouping: Grouping) -> str:
        self._groupings += 1
        return f"{run}/{self._groupings}"

    def score(self, grouping: str, sum_us: float | None, reason: str) -> None:
        return None

    def known_assembled(
        self, grouping: Grouping, schedules: Mapping[str, Schedule], *, pdl: bool
    ) -> AssembledResult | None:
        return None

    def assembled(
        self,
        grouping: str,
        result: AssembledResult,
        schedules: Mapping[str, Schedule],
        *,
        pdl: bool,
    ) -> None:
        return None
