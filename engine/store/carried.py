"""Results that came in a file from another machine and were taken in a context of this database.

They stand as if they had been measured here, but belong to no run: a run's journal tells what that run did.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlite_utils import Database

from engine.store.writes import PUT_NODE, leaf_of, node_row, put_deploy, put_ranking
from engine.vocabulary import Measurement, Regime


def put_evidence(db: Database, measurements: Sequence[Measurement], now: float) -> int:
    """Add what isn't there yet, inside a transaction of the caller's; returns how many rows are new or better.

    Like any measurement, a time replaces a failure and nothing replaces a time. Kernels and contexts are recorded
    before.
    """
    return sum(_put(db, measurement, now) for measurement in measurements)


def _put(db: Database, measurement: Measurement, now: float) -> bool:
    if measurement.regime is Regime.RANKING:
        before = db.conn.total_changes
        put_ranking(db, measurement, None, 0, now)
        return db.conn.total_changes > before
    leaf = leaf_of(measurement)
    if not db.conn.execute("SELECT 1 FROM node WHERE key = ?", (leaf.node,)).fetchone():
        db.conn.execute(PUT_NODE, node_row(leaf, None, measurement.context_key, 0, now))
    before = db.conn.total_changes
    put_deploy(db, measurement, leaf.node, now)
    return db.conn.total_changes > before
