"""A database's programs with their groupings, as rows to show: what was decided, what it cost, what reads what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from engine.cli.structure import explored_object
from engine.cli.winner import chosen_grouping
from engine.events import ComparedInPlace, GroupingsExplored
from engine.ir import Graph, Kernel
from engine.ir.plan import Grouping
from engine.store import RecordedGrouping, Store, StoredRun


@dataclass(frozen=True, slots=True)
class KernelShare:
    """A kernel of a grouping: how often it is launched, and its best time in us."""

    key: str
    label: str
    family: str
    shape: str
    count: int
    us: float | None


@dataclass(frozen=True, slots=True)
class GroupingRow:
    """One grouping; times in us. `number` counts the groupings of the run from 1, `gap` is in per cent of the sum."""

    number: int
    id: str
    decisions: tuple[str, ...]
    sum_us: float | None
    assembled_us: float | None
    pdl_us: float | None
    reason: str
    kernels: tuple[KernelShare, ...]

    @property
    def whole_us(self) -> float | None:
        return min((us for us in (self.assembled_us, self.pdl_us) if us is not None), default=None)

    @property
    def gap(self) -> float | None:
        return 100 * (self.whole_us / self.sum_us - 1) if self.whole_us is not None and self.sum_us else None

    @property
    def launches(self) -> int:
        return sum(kernel.count for kernel in self.kernels)

    @property
    def text(self) -> str:
        """The decisions, and what went wrong."""
        decided = " ".join(self.decisions) or "no question was asked"
        return f"{decided}: {self.reason}" if self.reason else decided


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """One launch of the best grouping. What it reads is an input by its name, or the launch that wrote it as #number.

    `results` are the program's outputs that it writes.
    """

    number: int
    kernel: str
    label: str
    us: float | None
    reads: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProgramGroupings:
    """A program as its latest run left it."""

    target: str
    gpu: str
    context: str
    run: str
    explored: GroupingsExplored | None
    rows: tuple[GroupingRow, ...]
    chosen: GroupingRow | None
    launches: tuple[LaunchRow, ...]
    in_place: tuple[ComparedInPlace, ...] = ()
    """What was tried in the whole graph of one of them."""

    def name(self, kernel: str) -> str:
        """What people call a kernel of the groupings."""
        shares = (share for row in self.rows for share in row.kernels if share.key == kernel)
        return next((share.label or share.family for share in shares), kernel)

    def as_object(self) -> dict[str, object]:
        """The form of `--json`."""
        return {
            "program": self.target,
            "gpu": self.gpu,
            "context": self.context,
            "run": self.run,
            **explored_object(self.explored, self.rows),
            "groupings": [{**asdict(row), "gap": row.gap, "chosen": row is self.chosen} for row in self.rows],
            "in_place": [asdict(one) for one in self.in_place],
            "graph": [asdict(launch) for launch in self.launches],
        }


def programs_with_groupings(store: Store, text: str = "") -> list[ProgramGroupings]:
    """Programs whose target holds `text` (case doesn't matter), in the order in which they first appear.

    Raises StoreError for a row that can't be read.
    """
    latest: dict[tuple[str, str], tuple[StoredRun, tuple[RecordedGrouping, ...]]] = {}
    for run in store.runs():
        if text.casefold() in run.target.casefold() and (found := store.recorded_groupings(run.id)):
            latest[run.target, run.context_key] = (run, found)
    return [_program(store, run, found) for run, found in latest.values()]


def _program(store: Store, run: StoredRun, found: tuple[RecordedGrouping, ...]) -> ProgramGroupings:
    times: dict[str, float | None] = {}
    for item in found:
        for key in item.grouping.kernel_counts():
            if key not in times:
                times[key] = _best_us(store, key, run.context_key)
    rows = tuple(_row(number, item, times) for number, item in enumerate(found, start=1))
    chosen = chosen_grouping(rows)
    launches: tuple[LaunchRow, ...] = ()
    program = store.readable_program(run.id) if chosen is not None else None
    if chosen is not None and program is not None:
        launches = launch_rows(found[chosen.number - 1].grouping, program.graph, times)
    explored = store.explored(run.id)
    tried = store.tried_in_place(run.id)
    return ProgramGroupings(run.target, run.gpu, run.context_key, run.id, explored, rows, chosen, launches, tried)


def _best_us(store: Store, key: str, context: str) -> float | None:
    """The deploy time where there is one, else the ranking time."""
    best = store.best_known(key, context)
    return best.us if best is not None else None


def _row(number: int, item: RecordedGrouping, times: Mapping[str, float | None]) -> GroupingRow:
    kernels = tuple(
        KernelShare(key, kernel.label, kernel.family, kernel.shape_text, count, times[key])
        for key, (kernel, count) in item.grouping.kernel_counts().items()
    )
    decisions = tuple(str(option) for option in item.decisions)
    reason = item.reason or item.pdl_reason
    return GroupingRow(number, item.id, decisions, item.sum_us, item.assembled_us, item.pdl_us, reason, kernels)


def launch_rows(grouping: Grouping, program: Graph, times: Mapping[str, float | None]) -> tuple[LaunchRow, ...]:
    """The plan's launches in order, with what each reads."""
    names = {i: label or f"input {i}" for i, label in enumerate(program.labels or ("",) * len(program.inputs))}
    names |= {index: "prepared" for step in grouping.prepared for index in step.results}
    outputs = {view.buffer: f"output {place}" for place, view in enumerate(grouping.outputs)}
    rows: list[LaunchRow] = []
    for number, call in enumerate(grouping.calls, start=1):
        reads = tuple(dict.fromkeys(names.get(view.buffer, f"buffer {view.buffer}") for view in call.arguments))
        results = tuple(outputs[index] for index in call.results if index in outputs)
        rows.append(LaunchRow(number, call.kernel.key, _name(call.kernel), times.get(call.kernel.key), reads, results))
        names |= {index: f"#{number}" for index in call.results}
    return tuple(rows)


def _name(kernel: Kernel) -> str:
    return f"{kernel.label or kernel.family} {kernel.shape_text}"
