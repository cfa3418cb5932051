"""How long a refit takes: the whole Learn step of a full reservoir, calibration included, in wall and CPU seconds.

    python -m tests.bench.prior_refit [ROWS]

Rows are the shipped ones, repeated under other kernels' names with times a little off, up to ROWS (100,000).
"""

from __future__ import annotations

import sys
import time

import numpy as np

from engine.prior import COLUMNS, FeatureMatrix, Reservoir, refit, shipped_rows


def filled(rows: int) -> Reservoir:
    shipped = shipped_rows()
    if shipped is None:
        raise SystemExit("this install has no shipped rows: python -m tests.bench.prior_rows")
    random = np.random.default_rng(0)
    reservoir = Reservoir(COLUMNS)
    copy = 0
    while len(reservoir) < rows:
        for group in np.unique(shipped.groups).tolist():
            chosen = shipped.groups == group
            values = FeatureMatrix(shipped.matrix.values[chosen], COLUMNS)
            log_us = shipped.log_us[chosen] + random.normal(0, 0.02, int(chosen.sum()))
            left = rows - len(reservoir)
            reservoir.offer(FeatureMatrix(values.values[:left], COLUMNS), log_us[:left], f"{copy}{group}")
        copy += 1
    return reservoir


def main() -> None:
    reservoir = filled(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    wall, cpu = time.perf_counter(), time.process_time()
    fitted = refit(reservoir)
    assert fitted is not None
    print(f"{len(reservoir):,} rows: {time.perf_counter() - wall:.1f} s wall, {time.process_time() - cpu:.1f} s CPU")
    print(f"{fitted.model.version}, {fitted.calibration.reason}")


if __name__ == "__main__":
    main()
