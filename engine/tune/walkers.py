"""Processes that search kernels whose every answer is known, several at a time, while the run goes on.

A repeated run asks its whole path again and waits for nothing but the interpreter, which one process has once. A walker
searches a kernel exactly as the run would, over the database alone; what happened is then told as the run's own.
Where one answer is missing the run searches that kernel itself, and all that follow: something is measured then, and
a search that is done twice would only delay it.
"""

from __future__ import annotations

import base64
import os
import pickle
import queue
import threading
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from engine.events import Event, RunState
from engine.measure import ChannelClosed, Message, Nursery, entry_command
from engine.store import NodeRecord, StoredRun
from engine.tune.settings import Objective, Settings

if TYPE_CHECKING:
    from engine.measure.process import Child
    from engine.tune.kernel import KernelResult

CHILD = "engine.tune.walker_child"
MOST_WALKERS = 4
"""Of a Qwen3 layer's repeated run more have nothing left to do: its outer search takes as long."""
CPUS_FOR_EACH = 2
ONE_THREAD = MappingProxyType({"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})
"""Nothing here multiplies matrices, and the threads that NumPy and SciPy start for that spin for a while each."""
WALK_LIMIT_S = 60.0
"""A walk takes below a second; a process that says nothing for so long is of no use."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the walkers of a run are given: its database, an earlier run of the same program, and its settings."""

    database: Path
    run: StoredRun
    settings: Settings


@dataclass(frozen=True, slots=True)
class Walked:
    """One kernel's search over known answers: what it told, the last row of each of its nodes, and what it counted."""

    result: KernelResult
    events: tuple[Event, ...]
    nodes: tuple[NodeRecord, ...]
    cached: int
    failed: int
    best_us: Mapping[str, float]


def packed(value: object) -> str:
    """Anything of ours as text for a channel between our own processes."""
    return base64.b64encode(pickle.dumps(value)).decode()


def unpacked(text: str) -> Any:
    """See `packed`. Only for what our own process said."""
    return pickle.loads(base64.b64decode(text))


def walkers_for(database: Path, run: StoredRun, settings: Settings) -> Walkers | None:
    """Begin walkers if this run repeats one that ended by itself, and there are CPUs for them."""
    repeats = (run.state, run.seed, run.patience) == (RunState.FINISHED, settings.seed, settings.patience)
    count = min(MOST_WALKERS, len(os.sched_getaffinity(0)) // CPUS_FOR_EACH - 1)
    if not repeats or settings.objective is not Objective.TIME or count < 1:
        return None
    return Walkers(Order(database.absolute(), run, settings), count)


class Walkers:
    """Begin at once, each owned by a thread. `context_key` is whose answers they know."""

    def __init__(self, order: Order, count: int) -> None:
        self.context_key = order.run.context_key
        self._order = order
        self._jobs: queue.SimpleQueue[tuple[Message, Future[Walked | None]] | None] = queue.SimpleQueue()
        self._walks: dict[str, Future[Walked | None]] = {}
        self._lock = threading.Lock()
        self._children: list[Child] = []
        self._over = threading.Event()
        self._nursery = Nursery(ONE_THREAD)
        self._threads = [
            threading.Thread(target=self._serve, args=(number,), name=f"emmy-walker-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def start(self, kernel: str, patience: int, prior: str) -> None:
        """Have a kernel (structural key) walked, steered by the prior of this version."""
        walk: Future[Walked | None] = Future()
        with self._lock:
            self._walks[kernel] = walk
        self._jobs.put(({"kernel": kernel, "patience": patience, "prior": prior}, walk))
        if self._over.is_set():
            _answer(walk, None)

    def walk(self, kernel: str) -> Future[Walked | None]:
        """What came of it; None where something isn't known, or the walker is gone."""
        return self._walks[kernel]

    def close(self) -> None:
        """End the processes and wait for their ends; what was not walked is answered with None. May be called again."""
        self._over.set()
        with self._lock:
            children = tuple(self._children)
        for child in children:
            child.kill()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._nursery.close()

    def _serve(self, number: int) -> None:
        """One process from its start to its end, on the thread that its life is tied to."""
        try:
            child = self._nursery.start(entry_command(CHILD), f"walker-{number}")
        except OSError:
            self._over.set()
            return self._let_go()
        with self._lock:
            self._children.append(child)
        try:
            child.channel.send({"order": packed(self._order)})
            while not self._over.is_set() and (job := self._jobs.get()) is not None:
                message, walk = job
                child.channel.send(message)
                answer = child.channel.receive(WALK_LIMIT_S)
                if "walked" not in answer:
                    break
                _answer(walk, unpacked(answer["walked"]))
        except (ChannelClosed, TimeoutError, OSError):
            pass
        finally:
            self._over.set()
            self._nursery.bury(child)
            self._let_go()

    def _let_go(self) -> None:
        """Whoever waits has to search by himself."""
        with self._lock:
            walks = tuple(self._walks.values())
        for walk in walks:
            _answer(walk, None)


def _answer(walk: Future[Walked | None], walked: Walked | None) -> None:
    with suppress(InvalidStateError):
        walk.set_result(walked)
