"""A database with very many measurements of one kernel, written past the store: it is only looked at."""

from __future__ import annotations

from pathlib import Path

from engine.events import KernelFound, KernelStarted, RunState, StateChanged
from engine.store import Store
from tests.emmy_tui.measured import fill, matmul
from tests.emmy_tui.scripted import START

FIRST_ROWS = 8
"""Measurements that are there before."""

_FILL = """
INSERT INTO measurement (kernel_key, schedule, context_key, status, median_us, low_us, high_us, failure_kind, cause,
                         normalized_cause, registers, spills, shared_bytes, run, trial, measured_at)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
SELECT kernel_key, printf('{"BLOCK_K":%d,"BLOCK_M":%d,"BLOCK_N":64,"NUM_STAGES":3,"NUM_WARPS":%d,"TRIAL":%d}',
       16 << (i % 3), 16 << (i % 5), 1 << (i % 6), i), context_key, iif(i % 9, 'ok', 'failed'),
       iif(i % 9, 10.0 + i % 9973, NULL), iif(i % 9, 9.0 + i % 9973, NULL), iif(i % 9, 11.0 + i % 9973, NULL),
       iif(i % 9, NULL, 'hang'), iif(i % 9, NULL, 'hung ' || i), iif(i % 9, NULL, 'hung <n>'),
       i % 255, i % 64, i % 200000, run, i + 100, ? + i
FROM n, (SELECT kernel_key, context_key, run FROM measurement WHERE trial = 1 LIMIT 1)
"""


def write_rows(path: Path, rows: int) -> Path:
    """Write the database and return its path."""
    fill(path, rows=FIRST_ROWS)
    kernel = matmul()
    with Store.open(path) as store:
        run = store.latest_run()
        assert run is not None
        found = KernelFound(
            at=START,
            kernel=kernel.key,
            label=kernel.label,
            family=kernel.family,
            shape=kernel.shape_text,
            count=1,
            flops=kernel.flops,
            bytes_moved=kernel.bytes_moved,
        )
        started = KernelStarted(at=START, kernel=kernel.key, patience=50)
        store.record_events(run.id, [found, started, StateChanged(at=START, state=RunState.FINISHED)])
        store._connection.db.conn.execute(_FILL, (rows, START))
    return path
