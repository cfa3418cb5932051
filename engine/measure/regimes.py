"""What a ranking time and a deploy time are: every setting that a number of either regime was taken under, as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from engine.ir.kernel import Kernel
from engine.vocabulary import Regime


@dataclass(frozen=True, slots=True)
class RegimeSettings:
    """`checks` launches are compared with a reference, each on fresh inputs and poisoned outputs.

    A window is one sample of at least `window_ms` of work; warming up takes at most `warmup_ms`. With `cold_l2` the
    GPU's L2 cache is flushed before each launch.
    """

    regime: Regime
    ptxas_level: int
    checks: int
    windows: int
    window_ms: float
    warmup_ms: float
    cold_l2: bool = False

    @property
    def text(self) -> str:
        """Canonical JSON of everything above: what is recorded beside a run's numbers."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> RegimeSettings:
        return cls(**{**data, "regime": Regime(data["regime"])})


RANKING = RegimeSettings(Regime.RANKING, ptxas_level=3, checks=1, windows=5, window_ms=0.8, warmup_ms=10.0)
"""About 4 ms of timing. Level 3 because a lower one saves little: compiling is mostly Triton's own passes."""

DEPLOY = RegimeSettings(Regime.DEPLOY, ptxas_level=3, checks=3, windows=25, window_ms=1.6, warmup_ms=60.0)
"""About 40 ms of timing, and three checks. Of a memory-bound kernel, hundreds of candidates come this far."""

FINALIST = replace(DEPLOY, checks=10)
"""What is put together to be used: one check misses a race that moves from run to run."""

TURNS = replace(DEPLOY, checks=1)
"""Finalists timed in turns, each of which has passed the deploy regime's checks; also the noise floor."""

RANKING_LEVELS: Mapping[str, int] = MappingProxyType(
    {"contraction": 3, "contraction fp32": 3, "attention": 3, "rowwise": 3, "pointwise": 3}
)
"""ptxas levels of the ranking regime by kind of kernel; what is not named keeps that of `RANKING`. On an H200, over
240 candidates a kind, -O1 compiled contractions in 0.79 of the time of -O3 and the others in 0.97 to 1.03 of it. It
ranks nearly as well (Spearman 0.93 to 0.98, -O3 0.98 to 1.00), but the 90th percentile of what a pick costs, 1.01 for
contractions at either level, rises to 1.02 (in fp32, rowwise), 1.04 (pointwise) and 1.01 (attention) from 1.00: no kind
gains. `tests/bench/regimes.py` prints the table."""

REGIMES: Mapping[Regime, RegimeSettings] = MappingProxyType({Regime.RANKING: RANKING, Regime.DEPLOY: DEPLOY})


def ranking_kind(kernel: Kernel) -> str:
    """The kind that a kernel ranks with: its family, products of fp32 values apart, for those unroll differently."""
    body = kernel.body
    of_fp32 = any(op.kind == "matmul" and body.ops[op.inputs[0]].out.dtype == "float32" for op in body.ops)
    return f"{kernel.family} fp32" if kernel.family == "contraction" and of_fp32 else kernel.family
