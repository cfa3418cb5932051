"""What was measured, kernel by kernel: the rows behind `emmy eval variants` and the Variants tab."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from engine.store.connection import Connection, Row
from engine.store.rows import read_knobs, unreal
from engine.vocabulary import KnobValue


@dataclass(frozen=True, slots=True)
class VariantRow:
    """One measured candidate; times in us, sizes in bytes. `error` is the relative norm against the reference."""

    rank: int
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
    """One kernel in one context: how many candidates ended how, and the best of them, failed ones last."""

    kernel: str
    label: str
    family: str
    shape: str
    gpu: str
    context: str
    ok: int
    failed: int
    rows: tuple[VariantRow, ...]


def matching_kernels(connection: Connection, kernel_text: str) -> dict[str, Row]:
    """Kernels by key, in the order of recording, whose label, family, shape text or key holds the text.

    Case doesn't matter. A text with `*` is a pattern for the whole of one of these.
    """
    wanted = kernel_text.casefold().strip()
    pattern = wanted.replace("[", "[[]").replace("?", "[?]") if "*" in wanted else f"*{_literal(wanted)}*"
    rows = connection.rows("SELECT key, label, family, shape FROM kernel ORDER BY rowid")
    return {
        row["key"]: row
        for row in rows
        if any(fnmatchcase(str(row[name]).casefold(), pattern) for name in ("label", "family", "shape", "key"))
    }


def _literal(text: str) -> str:
    return text.replace("[", "[[]").replace("?", "[?]")


def kernel_variants(connection: Connection, kernel_text: str, top: int) -> tuple[KernelVariants, ...]:
    """Kernels in the order of recording, the `top` best rows each; contexts are never mixed."""
    kernels = matching_kernels(connection, kernel_text)
    gpus = {row["key"]: row["gpu"] for row in connection.rows("SELECT key, gpu FROM context")}
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for key, context, status, count in connection.tuples(
        "SELECT kernel_key, context_key, status, count(*) FROM measurement GROUP BY kernel_key, context_key, status"
    ):
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
        )
        for key, context in found
    )


_BEST = """
SELECT m.median_us, m.low_us, m.high_us, m.status, m.schedule, m.registers, m.spills, m.shared_bytes, m.error,
       m.failure_kind, (SELECT n.deploy_us FROM node AS n WHERE n.kernel_key = m.kernel_key
       AND n.context_key = m.context_key AND n.schedule = m.schedule AND n.deploy_status IS NOT NULL
       ORDER BY n.deploy_us IS NULL, n.deploy_at LIMIT 1) AS deploy_us
FROM measurement AS m WHERE m.kernel_key = ? AND m.context_key = ? AND m.status = ? ORDER BY m.median_us, m.id LIMIT ?
"""


def _best_rows(connection: Connection, kernel_key: str, context_key: str, top: int) -> tuple[VariantRow, ...]:
    rows: list[Row] = []
    for status in ("ok", "failed"):
        rows += connection.rows(_BEST, (kernel_key, context_key, status, max(top - len(rows), 0)))
    return tuple(_variant(rank, row) for rank, row in enumerate(rows, start=1))


def _variant(rank: int, row: Row) -> VariantRow:
    return VariantRow(
        rank=rank,
        us=unreal(row["median_us"]),
        low_us=unreal(row["low_us"]),
        high_us=unreal(row["high_us"]),
        deploy_us=unreal(row["deploy_us"]),
        status=row["status"],
        schedule=read_knobs(row["schedule"]),
        registers=row["registers"],
        spills=row["spills"],
        shared_bytes=row["shared_bytes"],
        error=unreal(row["error"]),
        failure=row["failure_kind"] or "",
    )
