"""From a prior to speeds of options: an option is as fast as the best candidate that it still allows.

The full assignments of a kernel are predicted once, in one batch, and kept as a table of knob codes beside their
speeds; a question about options is then a few comparisons of columns. That keeps a descent cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.ir.kernel import Kernel
from engine.knobs import KNOBS
from engine.prior.features import feature_matrix, knob_code, knob_columns
from engine.prior.geometry import Column, knobs_read
from engine.prior.model import Prior
from engine.prior.structure import kernel_facts
from engine.vocabulary import KnobValue, Option, Target

Knobs = Mapping[str, KnobValue]
UNBUILDABLE_US = 1e15
"""What a kernel counts in a sum that can't be built on the chip: more than any program takes, and finite, so that of
two groupings the one with fewer of them is better, whatever forks are still open."""

_GRID: Mapping[str, tuple[KnobValue, ...]] = {
    "BLOCK_K": (32, 64, 128, 256),
    "GROUP_M": (1, 8),
    "PERSISTENT": (False,),
    "MASK": ("every",),
    "QUERY_TILES": (1,),
    "OVERLAP": ("none",),
    "STORES": ("pointer",),
    "EVICTION": ("",),
    "NUM_WARPS": (1, 2, 4, 8, 16),
    "NUM_STAGES": (1, 2, 3, 4),
}
"""Values tried for a knob that nobody decided, where fewer than the knob table's do."""


FP32_BYTES = 4
"""Operands of another width have one way to be multiplied."""


class OptionScorer:
    """Speeds (1/us) of sibling options of one kernel, as `prior` predicts their best completion.

    `candidates` are the full assignments of the kernel's space. Without them, every combination of a few values per
    knob is tried: good for an order of options, blind to legality. Knobs of a question that no candidate agrees
    with (a pin's, a recorded point's) are predicted for what is fixed and completed from the few values.
    """

    def __init__(self, prior: Prior, kernel: Kernel, target: Target, candidates: Iterable[Knobs] | None = None) -> None:
        self._prior = prior
        self._kernel = kernel
        self._target = target
        facts = kernel_facts(kernel)
        self._read = knobs_read(facts)
        self._tried = _GRID if facts["left_width"] == FP32_BYTES else {**_GRID, "PRECISION": (KNOBS["PRECISION"].off,)}
        given = None if candidates is None else list(candidates)
        self._codes = _grid(self._read, {}, self._tried) if given is None else knob_columns(given, self._read)
        self._speeds = self._predict(self._codes)

    def speeds(self, fixed: Knobs, options: Sequence[Option]) -> list[float]:
        """One speed an option, each above 0: the best predicted over the completions of `fixed` and the option."""
        allowed = self._agreeing(np.ones(len(self._speeds), dtype=bool), fixed)
        return [self._best(allowed, fixed, option) for option in options]

    def _best(self, allowed: NDArray[np.bool_], fixed: Knobs, option: Option) -> float:
        knobs = dict(option.knobs)
        found = self._speeds[self._agreeing(allowed, knobs)]
        if not len(found):
            found = self._predict(_grid(self._read, {**fixed, **knobs}, self._tried))
        return float(found.max())

    def _agreeing(self, rows: NDArray[np.bool_], knobs: Knobs) -> NDArray[np.bool_]:
        for name, value in knobs.items():
            if name in self._codes:
                rows = rows & (self._codes[name] == knob_code(KNOBS[name], value))
        return rows

    def _predict(self, codes: Mapping[str, Column]) -> Column:
        if not len(next(iter(codes.values()))):
            return np.empty(0)
        speeds: Column = np.exp(-self._prior.predict(feature_matrix(self._kernel, codes, self._target)))
        return speeds


def score_options(
    prior: Prior,
    kernel: Kernel,
    target: Target,
    fixed: Knobs,
    options: Sequence[Option],
    completions: Callable[[Knobs], Sequence[Knobs]] | None = None,
) -> list[float]:
    """Speeds (1/us) of options after `fixed`, for a single question; a search asks one `OptionScorer` many times.

    `completions` gives the full assignments that agree with the knobs it is asked about; without it a few values
    are tried for each undecided knob.
    """
    if completions is not None:
        return OptionScorer(prior, kernel, target, completions(fixed)).speeds(fixed, options)
    return OptionScorer(prior, kernel, target, ()).speeds(fixed, options)


def _grid(names: Sequence[str], fixed: Knobs, tried: Mapping[str, Sequence[KnobValue]]) -> dict[str, Column]:
    """Code columns of every combination of the values tried for what `fixed` leaves open (else the knob table's)."""
    chosen = [(fixed[name],) if name in fixed else tried.get(name, KNOBS[name].values) for name in names]
    axes = [np.array([knob_code(KNOBS[n], v) for v in values]) for n, values in zip(names, chosen, strict=True)]
    return dict(zip(names, (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")), strict=True))
