"""Numbers of candidates for a prior: kernel, chip, knob values and geometry, one row a schedule.

Text knobs have the position of their value in the knob table as a code, so a code never changes its meaning while
the table only grows at its ends. NaN means "not decided yet" and nothing else: a finished schedule fixes every knob.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.ir.kernel import Kernel
from engine.knobs import KNOBS, Knob
from engine.prior.geometry import GEOMETRY, Column, geometry, knobs_read
from engine.prior.structure import KERNEL_FACTS, TARGET_FACTS, kernel_facts, target_facts
from engine.vocabulary import KnobValue, Target

COLUMNS = (*KERNEL_FACTS, *TARGET_FACTS, *KNOBS, *GEOMETRY)
"""The column names of every matrix of features."""


@dataclass(frozen=True, slots=True)
class FeatureMatrix:
    """`values` is float64 [n, f], one row a schedule; `names` are the f column names."""

    values: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def column(self, name: str) -> Column:
        return self.values[:, self.names.index(name)]


def features(kernel: Kernel, schedules: Sequence[Mapping[str, KnobValue]], target: Target) -> FeatureMatrix:
    """Features of `schedules` of one kernel; a knob that it could have and a schedule lacks is NaN,
    and so is what depends on it; a knob that doesn't concern the kernel is off.

    Columns are the facts of the kernel and of the chip in their own units (bytes, FLOP/s), the knobs by name, then
    `geometry.GEOMETRY`. Knobs outside the knob table are left out.
    """
    read = knobs_read(kernel_facts(kernel))
    return feature_matrix(kernel, knob_columns(schedules, read), target)


def feature_matrix(kernel: Kernel, knobs: Mapping[str, Column], target: Target) -> FeatureMatrix:
    """The same from knob columns: one array of codes (see `knob_code`) for each knob that concerns the kernel."""
    facts = {**kernel_facts(kernel), **target_facts(target)}
    rows = len(next(iter(knobs.values())))
    read = knobs_read(facts)
    knobs = {
        name: knobs[name] if name in read else np.full(rows, knob_code(knob, knob.off)) for name, knob in KNOBS.items()
    }
    with np.errstate(invalid="ignore", divide="ignore"):
        derived = geometry(facts, knobs)
    names = (*facts, *knobs, *GEOMETRY)
    values = np.empty((rows, len(names)), order="F")
    values[:, : len(facts)] = list(facts.values())
    for position, column in enumerate((*knobs.values(), *(derived[name] for name in GEOMETRY)), start=len(facts)):
        values[:, position] = column
    return FeatureMatrix(values, names)


def knob_code(knob: Knob, value: KnobValue | None) -> float:
    """A knob's value as a number: itself, or a text's position in the table (after the last one if unknown).

    A schedule without an optional knob has it off.
    """
    if value is None:
        return knob_code(knob, knob.off) if knob.optional else np.nan
    if not isinstance(value, str):
        return float(value)
    return float(knob.values.index(value) if value in knob.values else len(knob.values))


def knob_columns(schedules: Sequence[Mapping[str, KnobValue]], names: Sequence[str]) -> dict[str, Column]:
    """What each schedule has for each of these knobs, as `knob_code` has it: float64 [n] a knob."""
    return {name: _column(KNOBS[name], schedules) for name in names}


def _column(knob: Knob, schedules: Sequence[Mapping[str, KnobValue]]) -> Column:
    given = [schedule.get(knob.name) for schedule in schedules]
    codes = {value: knob_code(knob, value) for value in set(given)}
    return np.array(list(map(codes.__getitem__, given)), dtype=np.float64)
