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

_Token = tuple[type, KnobValue]

ABSENT = -1
"""The code of a knob that an assignment doesn't name."""
MAX_PAIRED = 12
"""Knobs whose products are columns; with more, pairs would drown the knobs themselves."""


class KnobTable:
    """`candidates` as codes: one column a knob, in name order, a code being the value's place in `values`."""

    def __init__(self, candidates: Sequence[Knobs]) -> None:
        self.names = tuple(sorted(set().union(*candidates)))
        self.values: dict[str, list[KnobValue]] = {}
        self._places: dict[str, dict[_Token, int]] = {}
        self._having: dict[tuple[str, _Token], NDArray[np.bool_]] = {}
        self.codes: Codes = np.full((len(candidates), len(self.names)), ABSENT, dtype=np.int32)
        for column, name in enumerate(self.names):
            given = [knobs.get(name) for knobs in candidates]
            tokens = list(zip(map(type, given), given, strict=True))  # as `_token`, without a call for each
            values = _ordered([value for _, value in dict.fromkeys(tokens) if value is not None])
            self.values[name] = values
            places = self._places[name] = {_token(value): place for place, value in enumerate(values)}
            coded: dict[tuple[type, KnobValue | None], int] = dict.fromkeys(tokens, ABSENT)
            coded.update(places.items())
            self.codes[:, column] = list(map(coded.__getitem__, tokens))

    def __len__(self) -> int:
        return len(self.codes)

    def agreeing(self, rows: NDArray[np.bool_], knobs: Knobs) -> NDArray[np.bool_]:
        """Of `rows`, those that have all of these values; a knob that no candidate has is no condition."""
        for name, value in knobs.items():
            if name in self._places:
                rows = rows & self._rows_with(name, value)
        return rows

    def _rows_with(self, name: str, value: KnobValue) -> NDArray[np.bool_]:
        """Every row that has the value; kept, for a search asks thousands of times about a few."""
        token = _token(value)
        known = self._having.get((name, token))
        if known is None:
            place = self._places[name].get(token, len(self))
            known = self._having[name, token] = self.codes[:, self.names.index(name)] == place
        return known

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


def _token(value: KnobValue) -> _Token:
    """True and 1 are two values of a knob."""
    return type(value), value


def _ordered(values: Iterable[KnobValue]) -> list[KnobValue]:
    """Numbers by size, texts that are numbers among them, other texts behind, in alphabetical order."""

    def place(value: KnobValue) -> tuple[bool, float, str, str]:
        try:
            number = float(value)
        except ValueError:
            return True, 0.0, str(value), ""
        return not np.isfinite(number), number if np.isfinite(number) else 0.0, str(value), type(value).__name__

    return sorted(values, key=place)
