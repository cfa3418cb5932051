"""What was measured, kernel by kernel: the rows behind `emmy eval variants` and the Variants tab."""

from __future__ import annotations

from dataclasses import dataclass

from engine.store.candidates import BEST, PAGE_LIMIT, Candidate, CandidateQuery, candidate_numbers, candidate_rows
from engine.store.connection import Connection
from engine.store.matching import matching_kernels
from engine.store.records import IMPORTED
from engine.store.rows import a_time
from engine.vocabulary import KnobValue, Regime


@dataclass(frozen=True, slots=True)
class VariantRow:
    """One measured candidate; times in us, sizes in bytes. `error` is the relative norm against the reference.

    `best_us` is the time that the rank goes by, taken in `regime`; `us` is the ranking one.
    """

    rank: int
    best_us: float | None
    regime: Regime | None
    us: float | None
    low_us: float | None
    high_us: float | None
    deploy_us: float | None
    status: str
    schedule: dict[str, KnobValue]
    registers: int | None
    spills: int | None
    shared_bytes: int | None
    error: float | None
    failure: str


@dataclass(frozen=True, slots=True)
class KernelVariants:
    """One kernel in one context: how many candidates ended how, and the best of them, failed ones last.

    `untimed` are recorded as ok with what is no time, as only an edited database has them.
    """

    kernel: str
    label: str
    family: str
    shape: str
    gpu: str
    context: str
    ok: int
    failed: int
    rows: tuple[VariantRow, ...]
    untimed: int = 0


_ENDED = f"""
SELECT kernel_key, context_key, CASE WHEN status = 'ok' AND median_us IS NOT NULL AND NOT {a_time("median_us")}
THEN 'untimed' ELSE status END AS ended, count(*) FROM measurement GROUP BY kernel_key, context_key, ended
"""


def kernel_variants(connection: Connection, kernel_text: str, top: int) -> tuple[KernelVariants, ...]:
    """Kernels in the order of recording, the `top` best rows each; contexts are never mixed."""
    kernels = matching_kernels(connection, kernel_text)
    gpus = {row["key"]: row["gpu"] for row in connection.rows("SELECT key, gpu FROM context")}
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for key, context, status, count in connection.tuples(_ENDED):
        counts.setdefault((key, context), {})[status] = count
    order = {key: position for position, key in enumerate(kernels)}
    found = sorted((pair for pair in counts if pair[0] in kernels), key=lambda pair: (order[pair[0]], pair[1]))
    return tuple(
        KernelVariants(
            kernel=key,
            label=kernels[key]["label"],
            family=kernels[key]["family"],
            shape=kernels[key]["shape"],
            gpu=gpus.get(context, ""),
            context=context,
            ok=counts[key, context].get("ok", 0),
            failed=counts[key, context].get("failed", 0),
            rows=_best_rows(connection, key, context, top),
            untimed=counts[key, context].get("untimed", 0),
        )
        for key, context in found
    )


_LAUNCHING = """
WITH g AS (
    SELECT id, run, min(coalesce(assembled_us, pdl_us), coalesce(pdl_us, assembled_us)) AS whole_us, sum_us
    FROM "grouping"
), best AS (
    SELECT id, run, row_number() OVER (PARTITION BY run ORDER BY whole_us IS NULL, whole_us, sum_us IS NULL, sum_us)
           AS place FROM g WHERE whole_us IS NOT NULL OR sum_us IS NOT NULL
)
SELECT r.target, r.id FROM run AS r JOIN best ON best.run = r.id AND best.place = 1
JOIN grouping_kernel AS k ON k."grouping" = best.id
WHERE k.kernel_key = ? AND r.context_key = ? AND r.device <> ? ORDER BY r.started_at DESC, r.rowid DESC
"""


def launching_runs(connection: Connection, kernel_key: str, context_key: str) -> dict[str, str]:
    """The newest run of each target whose best grouping launches the kernel, by target, the newest first."""
    found: dict[str, str] = {}
    for target, run in connection.tuples(_LAUNCHING, (kernel_key, context_key, IMPORTED)):
        if target:
            found.setdefault(str(target), str(run))
    return found


def _best_rows(connection: Connection, kernel_key: str, context_key: str, top: int) -> tuple[VariantRow, ...]:
    numbers = candidate_numbers(connection, CandidateQuery(kernel_key, context=context_key, sort=BEST))
    found: list[Candidate] = []
    start = 0
    while start < len(numbers) and len(found) < top:
        page = numbers[start : start + min(PAGE_LIMIT, top - len(found))]
        rows = candidate_rows(connection, page)
        found += [rows[number] for number in page if number in rows]
        start += len(page)
    return tuple(_variant(rank, row) for rank, row in enumerate(found, start=1))


def _variant(rank: int, row: Candidate) -> VariantRow:
    return VariantRow(
        rank=rank,
        best_us=row.best_us,
        regime=row.regime,
        us=row.us,
        low_us=row.low_us,
        high_us=row.high_us,
        deploy_us=row.deploy_us,
        status=row.status,
        schedule=row.schedule,
        registers=row.registers,
        spills=row.spills,
        shared_bytes=row.shared_bytes,
        error=row.error,
        failure=row.failure,
    )
