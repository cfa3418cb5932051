"""Make what the prior of a machine that has measured nothing starts from, out of recorded landscapes.

    python -m tests.bench.prior_rows [tests/data/landscapes_h200.db.gz]

It writes `prior_rows.npz` (a sample of each kernel's timed candidates, with the branches above them) and
`prior_models.npz` (the model fitted to them) into `engine/data`, and prints what held-out kernels say of the model.
Run it again whenever the cold model, the features or the recorded landscapes change.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.data import SHIPPED_PRIOR_MODELS, SHIPPED_PRIOR_ROWS
from engine.deploy import database_rows
from engine.prior import refit, save_models
from tests.bench.search import opened


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", type=Path, nargs="?", default=Path("tests/data/landscapes_h200.db.gz"))
    with opened(parser.parse_args().database) as store:
        reservoir = database_rows(store)
    fitted = refit(reservoir)
    if fitted is None:
        raise SystemExit("the database holds no timed candidate")
    reservoir.save(SHIPPED_PRIOR_ROWS)
    save_models(SHIPPED_PRIOR_MODELS, [fitted])
    print(f"{len(reservoir)} rows of {len(fitted.groups)} kernels; {fitted.calibration.reason}")
    for path in (SHIPPED_PRIOR_ROWS, SHIPPED_PRIOR_MODELS):
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
