"""What a database knows of the kernels of the shown runs beside what those runs told: what deploys, and the floor.

An earlier run, one that was merged, or another program may have timed a kernel's fastest candidate, and only some runs
measured the GPU's ceilings. The screen then shows what a deployment and `emmy eval` go by.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from engine.deploy import fastest_deployed
from engine.events import Event, FloorFound, KernelFinished, KernelFound
from engine.ir import GraphError
from engine.ir.kernel import Kernel
from engine.ir.roofline import Ceilings, floor_us
from engine.snapshot import Snapshot, apply
from engine.snapshot_rows import schedule_text
from engine.store import BadRow, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Known(Event):
    """What of a kernel deploys by the times that the database holds; `us` None: nothing has a deploy time."""

    kernel: str
    us: float | None
    schedule: str = ""


class KnownKernels:
    """The kernels that the shown runs told of, each with the context that it was seen in last."""

    def __init__(self) -> None:
        self._contexts: dict[str, str] = {}
        self._floors: set[str] = set()
        self._told: dict[str, tuple[float | None, str]] = {}
        self._at = 0.0

    def note(self, event: Event, context_key: str) -> None:
        self._at = event.at
        if isinstance(event, KernelFound):
            self._contexts[event.kernel] = context_key
        elif isinstance(event, FloorFound):
            self._floors.add(event.kernel)
        elif isinstance(event, KernelFinished):
            self._told[event.kernel] = event.best_us, schedule_text(event.best_schedule)

    def events(self, store: Store) -> Iterator[Event]:
        """What the database knows of them and the runs did not tell, deploys and floors. Raises StoreError."""
        ceilings = {key: store.ceilings(key) for key in set(self._contexts.values())}
        there = set(store.kernel_keys())
        for key, context in self._contexts.items():
            if key not in there:
                continue
            try:
                kernel = store.kernel(key)
            except BadRow as error:
                store.leave_out(error)
                continue
            found = fastest_deployed(kernel, store, context)
            us, schedule = (found.us, str(found.schedule)) if found is not None else (None, "")
            told_us, told = self._told.get(key, (None, ""))
            if us != told_us or (us is not None and schedule != told):
                yield Known(at=self._at, kernel=key, us=us, schedule=schedule)
            if key not in self._floors:
                yield from self._floor(kernel, ceilings[context])

    def _floor(self, kernel: Kernel, ceilings: Ceilings | None) -> Iterator[Event]:
        with suppress(GraphError):
            if ceilings is not None:
                us, bound = floor_us(kernel, ceilings)
                yield FloorFound(at=self._at, kernel=kernel.key, floor_us=us, bound=bound)


def fold(snapshot: Snapshot, event: Event) -> None:
    """As `apply`, also of what is known beside the runs."""
    if not isinstance(event, Known):
        apply(snapshot, event)
    elif event.kernel in snapshot.kernels:
        snapshot.kernels[event.kernel].know(event.us, event.schedule)
        snapshot.touch("kernels", "tree")
