"""What a database knows of the kernels of the shown runs beside what those runs told: what deploys, and the floor.

An earlier run, one that was merged, or another program may have timed a kernel's fastest candidate, and only some runs
measured the GPU's ceilings. The screen then shows what a deployment and `emmy eval` go by. Kernels of which no shown
run tells, whose rows were imported or merged, are listed beside the others: how often they occur nobody knows.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from engine.deploy import fastest_deployed
from engine.events import Event, FloorFound, KernelFinished, KernelFound
from engine.ir import GraphError
from engine.ir.kernel import Kernel
from engine.ir.roofline import Ceilings, floor_us
from engine.snapshot import KernelRow, Snapshot, apply
from engine.snapshot_rows import schedule_text
from engine.store import Store
from engine.vocabulary import Regime

RECORDED = "recorded"
"""The state of a kernel that is known by its rows alone."""
LOOK_S, LOOK_SHARE = 1.0, 0.02
"""How often rows are looked for that came from elsewhere, and which share of the time that may take."""
Contexts = tuple[tuple[str, str, int], ...]
"""Key, GPU and number of rows of each context of a kernel, the newest measured first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known(Event):
    """What of a kernel deploys by the times that the database holds; `us` None: nothing has a deploy time."""

    kernel: str
    us: float | None
    schedule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(Event):
    """A kernel by its rows in the context that it was measured in last: its fastest there by ranking, and how many."""

    found: KernelFound
    us: float | None
    schedule: str
    count: int


class KnownKernels:
    """The kernels that the shown runs told of, each with the context that it was seen in last, and those that only
    rows tell of."""

    def __init__(self) -> None:
        self._rows: dict[str, Contexts] = {}
        self._changes: int | None = None
        self._look_at = 0.0
        self._contexts: dict[str, str] = {}
        self._floors: set[str] = set()
        self._told: dict[str, set[tuple[float | None, str]]] = defaultdict(set)
        self._at = 0.0

    def noted(self, told: Iterable[Event], context_key: str) -> Iterator[Event]:
        """The events of a run in this context as they come, each kept in mind."""
        for event in told:
            self._note(event, context_key)
            yield event

    def _note(self, event: Event, context_key: str) -> None:
        self._at = event.at
        if isinstance(event, KernelFound):
            self._contexts[event.kernel] = context_key
        elif isinstance(event, FloorFound):
            self._floors.add(event.kernel)
        elif isinstance(event, KernelFinished):
            schedule = schedule_text(event.best_schedule) if event.best_us is not None else ""
            self._told[event.kernel].add((event.best_us, schedule))

    def events(self, store: Store) -> Iterator[Event]:
        """What the database knows of them and the runs did not tell, deploys and floors. Raises StoreError."""
        ceilings = {key: store.ceilings(key) for key in set(self._contexts.values())}
        there = set(store.kernel_keys())
        for key, context in self._contexts.items():
            if key not in there:
                continue
            kernel = store.readable_kernel(key)
            if kernel is None:
                continue
            found = fastest_deployed(kernel, store, context)
            us, schedule = (found.us, str(found.schedule)) if found is not None else (None, "")
            if {(us, schedule)} != (self._told.get(key) or {(None, "")}):  # runs that were merged may each tell its own
                yield Known(at=self._at, kernel=key, us=us, schedule=schedule)
            if key not in self._floors:
                yield from self._floor(kernel, ceilings[context])
        yield from self.news(store)

    def news(self, store: Store) -> Iterator[Event]:
        """What came of kernels that no shown run tells of since the last look, at most every LOOK_S. Raises
        StoreError."""
        began = time.monotonic()
        if began < self._look_at:
            return
        changes = store.changes()
        if changes != self._changes:
            for key in store.kernel_keys():
                if key not in self._contexts:
                    yield from self._of_rows(store, key)
            self._changes = changes
        now = time.monotonic()
        self._look_at = now + max(LOOK_S, (now - began) / LOOK_SHARE)

    def _of_rows(self, store: Store, key: str) -> Iterator[Event]:
        contexts = store.kernel_contexts(key)
        if not contexts or self._rows.get(key) == contexts:
            return
        self._rows[key] = contexts
        context, _, count = contexts[0]
        kernel = store.readable_kernel(key)
        if kernel is None:
            return
        best, deployed = store.best(key, context, Regime.RANKING), fastest_deployed(kernel, store, context)
        found = KernelFound(
            at=self._at,
            kernel=key,
            label=kernel.label or kernel.family,
            family=kernel.family,
            shape=kernel.shape_text,
            count=0,
            flops=kernel.flops,
            bytes_moved=kernel.bytes_moved,
        )
        us, schedule = (best.us, str(best.schedule)) if best is not None else (None, "")
        yield Rows(at=self._at, found=found, us=us, schedule=schedule, count=count)
        if deployed is not None:
            yield Known(at=self._at, kernel=key, us=deployed.us, schedule=str(deployed.schedule))
        yield from self._floor(kernel, store.ceilings(context))

    def _floor(self, kernel: Kernel, ceilings: Ceilings | None) -> Iterator[Event]:
        with suppress(GraphError):
            if ceilings is not None:
                us, bound = floor_us(kernel, ceilings)
                yield FloorFound(at=self._at, kernel=kernel.key, floor_us=us, bound=bound)


def fold(snapshot: Snapshot, event: Event) -> None:
    """As `apply`, also of what is known beside the runs."""
    if isinstance(event, Rows):
        _list(snapshot, event)
    elif isinstance(event, Known):
        if event.kernel in snapshot.kernels:
            snapshot.kernels[event.kernel].know(event.us, event.schedule)
            snapshot.touch("kernels", "tree")
    else:
        if isinstance(event, KernelFound) and is_recorded(snapshot.kernels.get(event.kernel)):
            del snapshot.kernels[event.kernel]  # a run tells of it from now on
        apply(snapshot, event)


def is_recorded(row: KernelRow | None) -> bool:
    """Whether a kernel is known by its rows alone."""
    return row is not None and row.state == RECORDED


def unsearched(row: KernelRow | None) -> str:
    """What is said of a kernel where its search would be; "" where a run has told of it."""
    return "Only its rows are known: the Variants tab lists them, `emmy tune` searches" if is_recorded(row) else ""


def _list(snapshot: Snapshot, event: Rows) -> None:
    """List a kernel of which no run has told."""
    found = event.found
    row = snapshot.kernels.get(found.kernel)
    if row is None:
        names = (found.kernel, found.label, found.family, found.shape)
        row = KernelRow(*names, 0, found.flops, found.bytes_moved, state=RECORDED)
        snapshot.kernels[found.kernel] = row
    if is_recorded(row):
        row.best_us, row.ranked_schedule, row.recorded = event.us, schedule_text(event.schedule), event.count
        snapshot.touch("kernels")
