"""Candidates that were timed in both regimes: what says whether the one orders as the other does."""

from __future__ import annotations

from typing import Any

from engine.store.connection import Connection
from engine.store.rows import candidate_row, named_row, time_us
from engine.vocabulary import Regime

_PAIRS = (
    "SELECT m.kernel_key, m.id, m.median_us, n.key, min(n.deploy_us) FROM measurement AS m JOIN node AS n "
    "ON n.kernel_key = m.kernel_key AND n.context_key = m.context_key AND n.schedule = m.schedule "
    "WHERE m.context_key = ? AND m.status = 'ok' AND n.deploy_status = 'ok' "
    "GROUP BY m.id ORDER BY m.kernel_key, m.id"
)


def regime_pairs(connection: Connection, context_key: str) -> dict[str, list[tuple[float, float]]]:
    """(ranking us, deploy us) of each candidate of a context that has both, by the kernel's structural key."""
    found: dict[str, list[tuple[float, float]]] = {}
    for kernel, pair in connection.readable(connection.tuples(_PAIRS, (context_key,)), _pair):
        found.setdefault(kernel, []).append(pair)
    return found


def _pair(row: tuple[Any, ...]) -> tuple[str, tuple[float, float]]:
    kernel, number, ranking, node, deploy = row
    with named_row(candidate_row(Regime.RANKING, number, kernel)):
        ranking_us = time_us(ranking)
    with named_row(candidate_row(Regime.DEPLOY, node, kernel)):
        return kernel, (ranking_us, time_us(deploy))
