"""What a run walks: a captured program over its whole spaces, or a recorded one over the points that were recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from engine.codegen import offered_assignments, schedule_space, unbuildable_because
from engine.grouping import grouping_space
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping, Program
from engine.prior import Prior, Surrogate
from engine.search import EnumeratedSpace, Path, Space
from engine.store import RecordedGrouping, Store
from engine.vocabulary import KnobValue, Target


class Problem(Protocol):
    """The two levels of one program. `target` is the text the user typed."""

    @property
    def target(self) -> str: ...

    @property
    def graph(self) -> Graph | None:
        """The program's graph where it is known."""
        ...

    def outer_space(self) -> Space: ...

    def grouping(self, path: Path) -> Grouping: ...

    def kernel_counts(self, path: Path) -> Mapping[str, tuple[Kernel, int]]:
        """About the kernels of the grouping by key, and how often each occurs: good for an order of groupings."""
        ...

    def schedule_space(self, kernel: Kernel) -> Space: ...

    def declined_because(self, kernel: Kernel) -> str | None:
        """Why no candidate of the kernel can be made at all, or None."""
        ...

    def candidates(self, kernel: Kernel) -> Sequence[Mapping[str, KnobValue]]:
        """Every full assignment of the kernel's space."""
        ...

    def take_surrogate(self, kernel: Kernel, prior: Prior, seed: int) -> Surrogate | None:
        """One that was made beforehand for such a search of the kernel, for one only: it learns. Else None."""
        ...


class CapturedProblem:
    """A captured program: every grouping the rules offer, every legal schedule of each kernel."""

    def __init__(self, program: Program, target: Target) -> None:
        self._program = program
        self._target = target
        self._groupings = grouping_space(program.graph)
        self._surrogates: dict[tuple[str, str, int], Surrogate] = {}

    def keep_surrogate(self, kernel: Kernel, prior: Prior, seed: int, surrogate: Surrogate) -> None:
        """Keep one that was made beforehand and knows no answer yet, for the kernel's search."""
        self._surrogates[kernel.key, prior.version, seed] = surrogate

    def take_surrogate(self, kernel: Kernel, prior: Prior, seed: int) -> Surrogate | None:
        return self._surrogates.pop((kernel.key, prior.version, seed), None)

    @property
    def program(self) -> Program:
        return self._program

    @property
    def target(self) -> str:
        return self._program.target

    @property
    def graph(self) -> Graph:
        return self._program.graph

    def outer_space(self) -> Space:
        return self._groupings

    def grouping(self, path: Path) -> Grouping:
        return self._groupings.grouping(path)

    def kernel_counts(self, path: Path) -> Mapping[str, tuple[Kernel, int]]:
        return self._groupings.kernel_counts(path)

    def schedule_space(self, kernel: Kernel) -> Space:
        return schedule_space(kernel, self._target)

    def declined_because(self, kernel: Kernel) -> str | None:
        return unbuildable_because(kernel, self._target)

    def candidates(self, kernel: Kernel) -> Sequence[Mapping[str, KnobValue]]:
        return offered_assignments(kernel, self._target)


class RecordedProblem:
    """A recorded run: its groupings and its measured points are the whole space."""

    def __init__(self, target: str, groupings: Sequence[RecordedGrouping], store: Store, context_key: str) -> None:
        self._recorded_target = target
        self._groupings = {_assignment(item.decisions): item.grouping for item in groupings}
        self._store = store
        self._context = context_key

    @property
    def target(self) -> str:
        return self._recorded_target

    @property
    def graph(self) -> None:
        return None

    def outer_space(self) -> Space:
        return EnumeratedSpace([dict(decisions) for decisions in self._groupings])

    def grouping(self, path: Path) -> Grouping:
        return self._groupings[_assignment(path)]

    def kernel_counts(self, path: Path) -> Mapping[str, tuple[Kernel, int]]:
        return self.grouping(path).kernel_counts()

    def schedule_space(self, kernel: Kernel) -> Space:
        return EnumeratedSpace(self.candidates(kernel))

    def declined_because(self, kernel: Kernel) -> str | None:
        return None

    def candidates(self, kernel: Kernel) -> Sequence[Mapping[str, KnobValue]]:
        return [schedule.as_dict() for schedule in self._store.schedules(kernel.key, self._context)]

    def take_surrogate(self, kernel: Kernel, prior: Prior, seed: int) -> Surrogate | None:
        return None


def _assignment(decisions: Path) -> tuple[tuple[str, KnobValue], ...]:
    return tuple(sorted(knob for option in decisions for knob in option.knobs))
