"""Candidates that were timed in both regimes: what says whether the one orders as the other does."""

from __future__ import annotations

from engine.store.connection import Connection
from engine.store.rows import named_row

_PAIRS = (
    "SELECT m.kernel_key, m.median_us, min(n.deploy_us) FROM measurement AS m JOIN node AS n "
    "ON n.kernel_key = m.kernel_key AND n.context_key = m.context_key AND n.schedule = m.schedule "
    "WHERE m.context_key = ? AND m.status = 'ok' AND n.deploy_status = 'ok' AND m.median_us > 0 AND n.deploy_us > 0 "
    "GROUP BY m.id ORDER BY m.kernel_key, m.id"
)


def regime_pairs(connection: Connection, context_key: str) -> dict[str, list[tuple[float, float]]]:
    """(ranking us, deploy us) of each candidate of a context that has both, by the kernel's structural key."""
    found: dict[str, list[tuple[float, float]]] = {}
    for kernel, ranking, deploy in connection.tuples(_PAIRS, (context_key,)):
        with named_row(f"a time of kernel {kernel}"):
            found.setdefault(kernel, []).append((float(ranking), float(deploy)))
    return found
