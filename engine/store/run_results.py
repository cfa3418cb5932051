"""What one run came to, kernel by kernel: its best time in each regime, so that two runs can be laid side by side.

Nodes belong to the run that touched them last, so what an earlier run saw is read from its journal; a run without one
(results of another tuner) has its rows in `measurement`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from engine.knobs import parse_knobs
from engine.store.connection import Connection, Row
from engine.store.rows import RowName, named_row, read_knobs, time_or_none, time_us, unreal
from engine.store.typed import checked
from engine.vocabulary import KnobValue, Regime

NOISE_RUNS = 8
"""Of how many runs the journals are looked through for a noise floor: one that was not told lately is not known."""


@dataclass(frozen=True, slots=True)
class BestTime:
    """The fastest ok candidate of a kernel in one regime, in us; `low_us` to `high_us` is its samples' interval."""

    us: float
    low_us: float | None
    high_us: float | None
    schedule: dict[str, KnobValue]


@dataclass(frozen=True, slots=True)
class KernelResult:
    """One kernel of a run. `ok` and `failed` count what the ranking regime said of its candidates."""

    kernel: str
    label: str
    shape: str
    ok: int
    failed: int
    ranking: BestTime | None
    deploy: BestTime | None


_ROWS = """
WITH told AS MATERIALIZED (
    SELECT json_extract(body, '$.kernel') AS kernel, json_extract(body, '$.regime') AS regime,
           json_extract(body, '$.schedule') AS schedule, json_extract(body, '$.status') AS status,
           json_extract(body, '$.us') AS us, json_extract(body, '$.low_us') AS low_us,
           json_extract(body, '$.high_us') AS high_us
    FROM event WHERE run = :run AND kind = 'Measured' AND json_valid(body)
), kept AS (
    SELECT * FROM told UNION ALL
    SELECT kernel_key, 'ranking', schedule, status, median_us, low_us, high_us FROM measurement
    WHERE run = :run AND NOT EXISTS (SELECT 1 FROM told)
)
"""
_BEST = f"""{_ROWS} SELECT kernel, regime, schedule, min(us) AS us, low_us, high_us FROM kept
WHERE status = 'ok' AND us IS NOT NULL GROUP BY kernel, regime"""
_COUNTS = f"""{_ROWS} SELECT kept.kernel, k.label, k.family, k.shape, sum(kept.status = 'ok') AS ok,
sum(kept.status = 'failed') AS failed FROM kept LEFT JOIN kernel AS k ON k.key = kept.kernel
WHERE kept.regime = 'ranking' GROUP BY kept.kernel ORDER BY k.rowid"""


def run_results(connection: Connection, run: str) -> tuple[KernelResult, ...]:
    """Every kernel that the run measured, in the order of recording."""
    best: dict[tuple[str, str], BestTime] = {}
    for row in connection.rows(_BEST, {"run": run}):
        for found in connection.readable([row], _best):
            best[row["kernel"], row["regime"]] = found
    return tuple(connection.readable(connection.rows(_COUNTS, {"run": run}), partial(_result, best=best)))


def _result(row: Row, best: dict[tuple[str, str], BestTime]) -> KernelResult:
    with named_row(f"the results of kernel {row['kernel']}"):
        return checked(
            KernelResult(
                kernel=row["kernel"],
                label=row["label"] or row["family"] or row["kernel"],
                shape=row["shape"] or "",
                ok=int(row["ok"] or 0),
                failed=int(row["failed"] or 0),
                ranking=best.get((row["kernel"], Regime.RANKING)),
                deploy=best.get((row["kernel"], Regime.DEPLOY)),
            )
        )


def noise_share(connection: Connection, run: str) -> float | None:
    """The noise floor that the run measured, as a share of a time; None where it says nothing of it."""
    sql = "SELECT seq, CASE WHEN json_valid(body) THEN json_extract(body, '$.noise_share') ELSE body END AS share "
    sql += "FROM event WHERE run = ? AND kind = 'Health' ORDER BY seq DESC LIMIT 1"
    return next(connection.readable(connection.rows(sql, (run,)), _share), None)


def _share(row: Row) -> float | None:
    with named_row(RowName("event", row["seq"], "the health of a run")):
        return unreal(row["share"])


def context_noise_share(connection: Connection, context_key: str) -> float | None:
    """The noise floor that the newest run of the context measured, among its last NOISE_RUNS; None where none did."""
    sql = "SELECT id FROM run WHERE context_key = ? ORDER BY started_at DESC, rowid DESC LIMIT ?"
    for row in connection.rows(sql, (context_key, NOISE_RUNS)):
        share = noise_share(connection, str(row["id"]))
        if share is not None:
            return share
    return None


def _best(row: Row) -> BestTime:
    with named_row(f"a row of table event or measurement (the best {row['regime']} time of kernel {row['kernel']})"):
        return BestTime(
            us=time_us(row["us"]),
            low_us=time_or_none(row["low_us"]),
            high_us=time_or_none(row["high_us"]),
            schedule=_schedule(row["schedule"]),
        )


def _schedule(text: str) -> dict[str, KnobValue]:
    """The knobs of a row's key, or of a journal, which writes them in words: BLOCK_M=64 PERSISTENT=False."""
    if text.startswith("{"):
        return read_knobs(text)
    return parse_knobs(text).as_dict() if text else {}
