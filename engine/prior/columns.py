"""Numbers of full assignments of knobs nobody described to us: every kernel's, ours or another tool's.

A value's place among the recorded ones is always meaningful; of positive whole numbers (blocks, warps, unrolls) the
largest power of two in them is too, and so are products and ratios of two of them: threads, tile areas, work an item.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from engine.vocabulary import KnobValue

Knobs = Mapping[str, KnobValue]
Codes = NDArray[np.int32]

ABSENT = -1
"""The code of a knob that an assignment doesn't name."""
MAX_PAIRED = 12
"""Knobs whose products are columns; with more, pairs would drown the knobs themselves."""


class KnobTable:
    """`candidates` as codes: one column a knob, in name order, a code being the value's place in `values`."""

    def __init__(self, candidates: Sequence[Knobs]) -> None:
        self.names = tuple(sorted({name for knobs in candidates for name in knobs}))
        self.values = {
            name: _ordered({_token(knobs[name]): knobs[name] for knobs in candidates if name in knobs}.values())
            for name in self.names
        }
        self._places = {
            name: {_token(value): place for place, value in enumerate(values)} for name, values in self.values.items()
        }
        self.codes: Codes = np.full((len(candidates), len(self.names)), ABSENT, dtype=np.int32)
        for column, name in enumerate(self.names):
            places = self._places[name]
            self.codes[:, column] = [places[_token(k[name])] if name in k else ABSENT for k in candidates]

    def __len__(self) -> int:
        return len(self.codes)

    def agreeing(self, rows: NDArray[np.bool_], knobs: Knobs) -> NDArray[np.bool_]:
        """Of `rows`, those that have all of these values; a knob that no candidate has is no condition."""
        for column, name in enumerate(self.names):
            if name in knobs:
                rows = rows & (self.codes[:, column] == self._places[name].get(_token(knobs[name]), len(rows)))
        return rows

    def columns(self) -> NDArray[np.float32]:
        """float32 [n, f]: codes, powers of two and pairs; constant columns are left out."""
        found: list[NDArray[np.float64]] = [column.astype(np.float64) for column in self.codes.T]
        logs = []
        for name, codes in zip(self.names, self.codes.T, strict=True):
            values = self.values[name]
            numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
            if len(numbers) != len(values) or min(numbers) < 1 or len(numbers) < 3 or (codes == ABSENT).any():
                continue
            found.append(np.log2([float(number & -number) for number in numbers])[codes])
            logs.append(np.log2([float(number) for number in numbers])[codes])
        for left, right in combinations(logs[:MAX_PAIRED], 2):
            found += [left + right, left - right]
        varying = [column for column in found if len(column) and np.ptp(column) > 0]
        matrix: NDArray[np.float32] = np.array(varying, dtype=np.float32).reshape(len(varying), len(self)).T.copy()
        return matrix


def _token(value: KnobValue) -> tuple[str, KnobValue]:
    """True and 1 are two values of a knob."""
    return type(value).__name__, value


def _ordered(values: Iterable[KnobValue]) -> list[KnobValue]:
    """Numbers by size, texts that are numbers among them, other texts behind, in alphabetical order."""

    def place(value: KnobValue) -> tuple[bool, float, str, str]:
        try:
            number = float(value)
        except ValueError:
            return True, 0.0, str(value), ""
        return not np.isfinite(number), number if np.isfinite(number) else 0.0, str(value), type(value).__name__

    return sorted(values, key=place)
