"""A source whose events are written beforehand: the screen's tests need neither an engine nor a second thread.

`search_events` is a believable run: kernels with forks, a tree that grows along PUCT-like paths, times that fall,
failures, cached hits, a pause between kernels, a summary. It is the same for the same arguments.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from emmy_tui.source import Again, Mode
from engine.events import (
    Assembled,
    CandidateStarted,
    CeilingsMeasured,
    CompilersSeen,
    Event,
    FloorFound,
    GroupingEntered,
    GroupingScored,
    Health,
    KernelFinished,
    KernelFound,
    KernelStarted,
    Measured,
    NodeOpened,
    NodeVisited,
    Respawned,
    RunFinished,
    RunStarted,
    RunState,
    StateChanged,
    WorkersSeen,
)
from engine.vocabulary import KnobValue, Schedule

START = 1_780_000_000.0

Knobs = Sequence[tuple[str, Sequence[KnobValue]]]

CONTRACTION: Knobs = (
    ("BLOCK_M", (16, 32, 64, 128, 256)),
    ("BLOCK_N", (16, 32, 64, 128, 256)),
    ("BLOCK_K", (16, 32, 64, 128)),
    ("NUM_WARPS", (2, 4, 8)),
    ("NUM_STAGES", (1, 2, 3, 4)),
)
ROWWISE: Knobs = (("ROWS", (1, 2, 4, 8, 16)), ("COLUMNS", (1024, 2048, 4096)), ("NUM_WARPS", (1, 2, 4, 8, 16)))


@dataclass(frozen=True)
class Work:
    """One kernel of the script."""

    key: str
    label: str
    family: str
    shape: str
    count: int
    knobs: Knobs
    base_us: float
    trials: int
    cached: int = 0
    fails: float = 0.12


WORKS = (
    Work("5f1c", "matmul", "contraction", "4096x4096x4096 bf16", 1, CONTRACTION, 176.0, 60),
    Work("9ab0", "linear_gelu", "contraction", "512x1024x4096 bf16", 28, CONTRACTION, 8.4, 40),
    Work("77d2", "rms_norm", "rowwise", "16384x4096 bf16", 57, ROWWISE, 64.7, 30, cached=12),
    Work("c03e", "softmax", "rowwise", "16384x4096 bf16", 28, ROWWISE, 66.0, 20),
    Work("e911", "rope", "pointwise", "512x128 bf16", 28, ROWWISE, 3.1, 9, fails=1.0),
)


@dataclass
class _Tree:
    """Visits and bests of one kernel's nodes."""

    work: Work
    visits: dict[str, int] = field(default_factory=dict)
    best: dict[str, float] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)

    def name(self, path: tuple[KnobValue, ...]) -> str:
        return hashlib.sha256(f"{self.work.key}{path}".encode()).hexdigest()[:12]


class Script:
    """Builds a run's events; `clock` seconds pass between two candidates."""

    def __init__(self, seed: int = 1, works: Sequence[Work] = WORKS, clock: float = 0.4) -> None:
        self._random = random.Random(seed)
        self._works = works
        self._clock = clock
        self._at = START
        self._measured = self._cached = self._failed = 0

    def events(self) -> Iterator[Event]:
        yield RunStarted(
            at=self._at,
            run="r1",
            target="examples/layer.py:layer0",
            device="cuda:0",
            gpu="NVIDIA H200",
            seed=1,
            patience=50,
            prior="cold-1",
            database="tune.db",
        )
        yield StateChanged(at=self._at, state=RunState.CAPTURING)
        yield StateChanged(at=self._step(), state=RunState.RUNNING)
        keys = tuple(work.key for work in self._works)
        counts = tuple(work.count for work in self._works)
        yield NodeOpened(at=self._at, node="outer", parent="", kernel="", label="", prior=1.0, depth=0)
        yield NodeOpened(
            at=self._at, node="outer1", parent="outer", kernel="", label="FUSE=epilogue", prior=1.0, depth=1
        )
        yield GroupingEntered(at=self._at, grouping="g1", decisions=("FUSE=epilogue",), kernels=keys, counts=counts)
        for work in self._works:
            yield KernelFound(
                at=self._at,
                kernel=work.key,
                label=work.label,
                family=work.family,
                shape=work.shape,
                count=work.count,
                flops=2 * 4096**3,
                bytes_moved=3 * 4096**2 * 2,
            )
        bests: list[float | None] = []
        for work in self._works:
            best: float | None = None
            for event in self._kernel(work):
                if isinstance(event, KernelFinished):
                    best = event.best_us
                yield event
            bests.append(best)
        yield from self._end(bests)

    def _step(self, seconds: float | None = None) -> float:
        self._at += self._clock if seconds is None else seconds
        return self._at

    def _end(self, bests: list[float | None]) -> Iterator[Event]:
        timed = [best * work.count for best, work in zip(bests, self._works, strict=True) if best is not None]
        total = sum(timed) if timed else None
        yield NodeVisited(at=self._at, node="outer1", visits=1, best_us=total, state="measured")
        yield NodeVisited(at=self._at, node="outer", visits=1, best_us=total, state="open")
        yield GroupingScored(at=self._at, grouping="g1", sum_us=total)
        if total is not None:
            yield Assembled(at=self._step(), grouping="g1", sum_us=total, assembled_us=total * 1.016, error=2e-3)
        yield RunFinished(
            at=self._step(),
            measured=self._measured,
            cached=self._cached,
            failed=self._failed,
            best_us=None,
            sum_us=total,
            assembled_us=total and total * 1.016,
            search_share=0.04,
            gpu_idle_share=0.21,
            wall_s=self._at - START,
        )
        yield StateChanged(at=self._at, state=RunState.FINISHED)

    def _kernel(self, work: Work) -> Iterator[Event]:
        yield KernelStarted(at=self._step(), kernel=work.key, patience=50)
        tree = _Tree(work)
        yield from self._open(tree, (), 1.0)
        best = math.inf
        knobs_of_best = ""
        for trial in range(1, work.trials + 1):
            path = self._choose(tree)
            yield from self._siblings(tree, path)
            schedule = Schedule.of(dict(zip((name for name, _ in work.knobs), path, strict=True))).key
            yield CandidateStarted(at=self._at, kernel=work.key, node=tree.name(path), schedule=schedule)
            event = self._measure(work, tree, path, schedule, trial, best)
            if event.us is not None and event.best:
                best, knobs_of_best = event.us, schedule
            yield event
            yield from self._visits(tree, path, event)
            if trial % 8 == 0:
                yield Health(at=self._at, search_share=0.04, gpu_idle_share=0.23, compiling=4, respawns=0)
        ok = best < math.inf
        yield KernelFinished(
            at=self._at,
            kernel=work.key,
            state="done" if ok else "failed",
            reason="patience" if ok else f"all {work.trials} candidates failed: out of shared memory",
            best_us=best * 0.995 if ok else None,
            best_schedule=knobs_of_best,
        )

    def _choose(self, tree: _Tree) -> tuple[KnobValue, ...]:
        path: tuple[KnobValue, ...] = ()
        for _, values in tree.work.knobs:
            weights = [
                2.0 if tree.name((*path, value)) in tree.best else 1.0 + index / len(values)
                for index, value in enumerate(values)
            ]
            path = (*path, self._random.choices(list(values), weights)[0])
        return path

    def _open(self, tree: _Tree, path: tuple[KnobValue, ...], prior: float) -> Iterator[Event]:
        name = tree.name(path)
        if name not in tree.opened:
            tree.opened.add(name)
            label = f"{tree.work.knobs[len(path) - 1][0]}={path[-1]}" if path else ""
            yield NodeOpened(
                at=self._at,
                node=name,
                parent=tree.name(path[:-1]) if path else "",
                kernel=tree.work.key,
                label=label,
                prior=prior,
                depth=len(path),
            )

    def _siblings(self, tree: _Tree, path: tuple[KnobValue, ...]) -> Iterator[Event]:
        for depth, (_, values) in enumerate(tree.work.knobs):
            for index, value in enumerate(values):
                yield from self._open(tree, (*path[:depth], value), 1.0 - 0.13 * index)

    def _measure(
        self, work: Work, tree: _Tree, path: tuple[KnobValue, ...], schedule: str, trial: int, best: float
    ) -> Measured:
        at = self._step()
        cached = trial <= work.cached
        self._cached += cached
        self._measured += not cached
        if self._random.random() < work.fails:
            self._failed += 1
            return Measured(
                at=at,
                kernel=work.key,
                node=tree.name(path),
                schedule=schedule,
                regime="ranking",
                status="failed",
                trial=trial,
                failure="out of shared memory",
                cause="ptxas: smem 262144 > 232448 bytes in [kernel_0] at /tmp/a.ptx:12",
                cached=cached,
            )
        distance = sum(
            abs(hash_unit(f"{work.key}{name}{value}")) for (name, _), value in zip(work.knobs, path, strict=True)
        )
        us = work.base_us * (1 + 0.9 * distance / len(path) + 2.2 * self._random.random() ** 3 * math.exp(-trial / 25))
        return Measured(
            at=at,
            kernel=work.key,
            node=tree.name(path),
            schedule=schedule,
            regime="ranking",
            status="ok",
            trial=trial,
            us=us,
            low_us=us * 0.995,
            high_us=us * 1.006,
            cached=cached,
            best=us < best,
        )

    def _visits(self, tree: _Tree, path: tuple[KnobValue, ...], event: Measured) -> Iterator[Event]:
        for depth in range(len(path), -1, -1):
            name = tree.name(path[:depth])
            tree.visits[name] = tree.visits.get(name, 0) + 1
            if event.us is not None:
                tree.best[name] = min(event.us, tree.best.get(name, math.inf))
            leaf = depth == len(path)
            state = ("failed" if event.us is None else "measured") if leaf else "open"
            yield NodeVisited(
                at=self._at, node=name, visits=tree.visits[name], best_us=tree.best.get(name), state=state
            )


def hash_unit(text: str) -> float:
    """A number of 0 to 1 that depends on nothing but the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32


def search_events(seed: int = 1, works: Sequence[Work] = WORKS) -> list[Event]:
    return list(Script(seed, works).events())


def failed_events() -> list[Event]:
    """A run in which every candidate of its one kernel fails."""
    return search_events(works=(WORKS[-1],))


def floors(works: Sequence[Work] = WORKS) -> list[Event]:
    """What a run tells once it has measured the ceilings of its GPU."""
    kinds, rates = ("bf16", "fp32"), (790.0, 51.5)
    ceilings = CeilingsMeasured(at=START, device="cuda:0", copy_gbs=4021.0, kinds=kinds, tflops=rates)
    bounds = {"contraction": "compute"}
    return [
        ceilings,
        *(
            FloorFound(at=START, kernel=work.key, floor_us=work.base_us / 1.7, bound=bounds.get(work.family, "memory"))
            for work in works
        ),
    ]


COMPILING = (
    CompilersSeen(
        at=START,
        numbers=(7, 9),
        kernels=("5f1c", "5f1c"),
        schedules=("BLOCK_M=64", "BLOCK_M=32"),
        ages_s=(3.2, 0.4),
    ),
    WorkersSeen(
        at=START,
        devices=("cuda:0",),
        pids=(4711,),
        steps=("timing",),
        kernels=("5f1c",),
        schedules=("BLOCK_M=16",),
        ages_s=(0.1,),
    ),
    Respawned(
        at=START,
        device="cuda:0",
        process="benchmark process",
        kernel="5f1c",
        schedule="BLOCK_M=128",
        cause="an illegal access",
    ),
)
"""What a run on a GPU says of its processes."""


class ScriptedSource:
    """Serves written events, all at once or `per_drain` at a time; remembers the verbs it was asked for."""

    def __init__(
        self,
        events: Sequence[Event] = (),
        *,
        mode: Mode = Mode.LIVE,
        capabilities: Sequence[str] = ("pause", "stop"),
        per_drain: int | None = None,
        locate: Callable[[], Path] | None = None,
    ) -> None:
        self.mode = mode
        self.title = "scripted"
        self.database = "~/.local/share/emmy/tune.db"
        self.capabilities = frozenset(capabilities)
        self.dropped = 0
        self.locate = locate
        self.badges: tuple[str, ...] = ()
        self.reading = False
        self.trouble = self.unwritable = ""
        self.heard_s: float | None = None
        self.lost = False
        self.asked: list[str] = []
        self.waiting = list(events)
        self._per_drain = per_drain

    def drain(self, limit: int) -> list[Event]:
        taken = min(limit, self._per_drain or limit)
        events, self.waiting = self.waiting[:taken], self.waiting[taken:]
        return events

    def add(self, *events: Event) -> None:
        self.waiting += events

    def _state(self, state: RunState) -> None:
        self.add(StateChanged(at=START + 30, state=state))

    def start(self) -> None:
        self.asked.append("start")
        self.capabilities = frozenset({"pause", "stop"})
        self._state(RunState.RUNNING)

    def pause(self) -> None:
        self.asked.append("pause")
        self.capabilities = frozenset({"resume", "stop"})
        self._state(RunState.PAUSED)

    def resume(self) -> None:
        self.asked.append("resume")
        self.capabilities = frozenset({"pause", "stop"})
        self._state(RunState.RUNNING)

    def stop(self) -> None:
        self.asked.append("stop")
        self.capabilities = frozenset()
        self._state(RunState.STOPPING)

    def skip(self, kernel: str) -> None:
        self.asked.append(f"skip {kernel}")

    def set_patience(self, kernel: str, patience: int) -> None:
        self.asked.append(f"patience {kernel} {patience}")

    def kill_compile(self, number: int, kernel: str, schedule: str) -> None:
        self.asked.append(f"kill {number}")

    def enqueue(self, wanted: Sequence[Again]) -> None:
        self.asked += [f"enqueue {one.kernel} {one.schedule or ''}".strip() for one in wanted]

    def stopped(self) -> None:
        """The engine says that it has stopped."""
        self.capabilities = frozenset({"start"})
        self._state(RunState.STOPPED)

    def abort(self) -> None:
        self.asked.append("abort")

    def close(self) -> None:
        self.asked.append("close")
