"""Every candidate of a kernel as numbered rows, filtered and sorted by SQLite, so that a screen holds only a page.

A candidate has a ranking row in `measurement`, a deploy row in `node`, or both; its number is the id of the first, or
the negative rowid of the second where there is no first. The numbers alone are a list of any length; the rows come
by their numbers, a page at a time, because skipping a million rows costs as much as reading them.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.store.connection import Connection, Row
from engine.store.errors import StoreError
from engine.store.matching import matching_kernels
from engine.store.rows import a_time, candidate_row, named_row, read_knobs, time_or_none, time_us, unreal
from engine.store.typed import checked
from engine.vocabulary import KnobValue, Regime

PAGE_LIMIT = 500
"""Rows of one `candidate_rows`, below SQLite's bound on parameters."""
NEWEST = 10_000
"""Rows of a kernel that are looked at for the names of its knobs."""


class Compared(StrEnum):
    """How a condition compares."""

    IS = "="
    IS_NOT = "!="
    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="


BEST = "best"
"""The order of pins and sums: what has a deploy time before what has not, as times of two regimes don't compare."""

NUMBERS = {
    "us": "c.us",
    "low": "c.low_us",
    "high": "c.high_us",
    "deploy": "c.deploy_us",
    "registers": "c.registers",
    "spills": "c.spills",
    "shared": "c.shared_bytes",
    "error": "c.error",
    "trial": "c.trial",
}
"""What is compared as a number, and sorted by: times in us, sizes in bytes."""

TEXTS = {"st": "c.status", "failure": "c.failure", "cause": "c.cause", "run": "c.run"}
"""What is compared as a text, without case; `*` stands for anything."""

REGIME, BY = "regime", "by"
"""Whether the candidate was timed in a regime; and of which regime the time that counts is."""

_KNOBS = "CASE WHEN json_valid(c.schedule) THEN c.schedule END"
_COMPARED_NUMBERS = {BEST: "coalesce(c.deploy_us, c.us)", **NUMBERS}


@dataclass(frozen=True, slots=True)
class Condition:
    """`field` is BEST (the time that counts), one of NUMBERS or TEXTS, `regime`, `by`, or a knob's name.

    A number compares with BEST, NUMBERS and knobs. One that IS the value lies no further than `within` from it; one
    that is BELOW or ABOVE lies further from it, so that of the three exactly one holds.
    """

    field: str
    compared: Compared
    value: float | str
    within: float = 0.0


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """Which candidates, in which order. `kernel` is a structural key; `kernel_text`, if given, finds kernels instead.

    `context` "" means every context. `sort` is BEST or one of NUMBERS; rows without the value come last.
    """

    kernel: str
    kernel_text: str = ""
    context: str = ""
    conditions: tuple[Condition, ...] = ()
    sort: str = BEST
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row. `us` is the ranking time, `deploy_us` the deploy regime's; sizes in bytes."""

    number: int
    kernel: str
    label: str
    context: str
    schedule: dict[str, KnobValue]
    status: str
    us: float | None
    low_us: float | None
    high_us: float | None
    deploy_us: float | None
    registers: int | None
    spills: int | None
    shared_bytes: int | None
    compile_s: float | None
    error: float | None
    failure: str
    cause: str
    run: str
    trial: int
    measured_at: float | None
    pinned: bool
    code_bytes: int | None = None

    @property
    def best_us(self) -> float | None:
        """The time that counts: the deploy regime's where it was taken, else the ranking one."""
        return self.deploy_us if self.deploy_us is not None else self.us

    @property
    def regime(self) -> Regime | None:
        """The regime of `best_us`."""
        if self.best_us is None:
            return None
        return Regime.RANKING if self.deploy_us is None else Regime.DEPLOY


_A_TIME = f"(deploy_us IS NULL OR {a_time('deploy_us')})"
"""What `time_or_none` takes: one deploy row that holds none leaves the candidate its others."""
_CANDIDATES = f"""
WITH deployed AS MATERIALIZED (
    SELECT rowid AS number, key, kernel_key, context_key, schedule, min(deploy_us) AS us, deploy_status AS status,
           deploy_registers AS registers, deploy_spills AS spills, deploy_shared_bytes AS shared_bytes,
           deploy_compile_s AS compile_s, deploy_code_bytes AS code_bytes, deploy_error AS error,
           deploy_failure AS failure, deploy_cause AS cause, run, deploy_at AS at
    FROM node WHERE deploy_status IS NOT NULL AND {{deployed}} AND {_A_TIME}
    GROUP BY kernel_key, context_key, schedule
), c AS (
    SELECT m.id AS number, m.kernel_key, m.context_key, m.schedule, m.status, m.median_us AS us, m.low_us, m.high_us,
           d.us AS deploy_us, d.status AS deploy_status, m.registers, m.spills, m.shared_bytes, m.compile_s,
           m.code_bytes, m.error,
           coalesce(m.failure_kind, d.failure) AS failure, coalesce(m.cause, d.cause) AS cause, m.run, m.trial,
           m.measured_at, d.key
    FROM measurement AS m LEFT JOIN deployed AS d
    ON d.kernel_key = m.kernel_key AND d.context_key = m.context_key AND d.schedule = m.schedule
    WHERE {{ranked}}
    UNION ALL
    SELECT -d.number, d.kernel_key, d.context_key, d.schedule, d.status, NULL, NULL, NULL, d.us, d.status,
           d.registers, d.spills, d.shared_bytes, d.compile_s, d.code_bytes, d.error, d.failure, d.cause, d.run, 0,
           d.at, d.key
    FROM deployed AS d WHERE NOT EXISTS (SELECT 1 FROM measurement AS m WHERE m.kernel_key = d.kernel_key
    AND m.context_key = d.context_key AND m.schedule = d.schedule)
)
"""
_PLACES = (
    "(kernel_key, context_key, schedule) IN (SELECT kernel_key, context_key, schedule FROM measurement "
    "WHERE id IN ({marks}) UNION ALL SELECT kernel_key, context_key, schedule FROM node WHERE rowid IN ({marks}))"
)
_PAGE = """
SELECT c.*, coalesce(k.label, k.family, c.kernel_key) AS kernel_label, EXISTS (SELECT 1 FROM pin AS p
    WHERE p.kernel_key = c.kernel_key AND p.context_key = c.context_key AND p.schedule = c.schedule
    AND p.removed_at IS NULL) AS pinned
FROM c LEFT JOIN kernel AS k ON k.key = c.kernel_key
"""


def candidate_numbers(connection: Connection, query: CandidateQuery) -> array[int]:
    """The numbers of the rows in order. Raises StoreError for an unknown sort or field."""
    kernels = _kernels(connection, query)
    order = _order(query)
    parameters: list[object] = []
    terms = [_term(condition, parameters) for condition in query.conditions]
    if query.context:
        terms.append("c.context_key = ?")
        parameters.append(query.context)
    where = f"WHERE {' AND '.join(terms)}" if terms else ""
    marks = ", ".join("?" for _ in kernels)
    _leave_out_deploys(connection, kernels)
    candidates = _CANDIDATES.format(deployed=f"kernel_key IN ({marks})", ranked=f"m.kernel_key IN ({marks})")
    sql = f"{candidates} SELECT c.number FROM c {where} ORDER BY {order}, c.number"
    return array("q", (row[0] for row in connection.tuples(sql, [*kernels, *kernels, *parameters])))


def _leave_out_deploys(connection: Connection, kernels: Sequence[str]) -> None:
    """Keep a sentence about each deploy row of the kernels that has no time where it should."""
    marks = ", ".join("?" for _ in kernels)
    sql = f"SELECT * FROM node WHERE deploy_status IS NOT NULL AND kernel_key IN ({marks}) AND NOT {_A_TIME}"
    for _ in connection.readable(connection.rows(sql, kernels), _deploy_us):
        pass


def _deploy_us(row: Row) -> float:
    with named_row(candidate_row(Regime.DEPLOY, row["key"], row["kernel_key"])):
        return time_us(row["deploy_us"])


def knob_names(connection: Connection, kernel: str) -> frozenset[str]:
    """Names of the knobs in the kernel's newest rows, and in the newest row of every other kernel."""
    sql = (
        "WITH m AS (SELECT * FROM (SELECT schedule FROM measurement WHERE kernel_key = ? ORDER BY id DESC LIMIT ?) "
        "UNION ALL SELECT schedule FROM measurement WHERE id IN (SELECT max(id) FROM measurement GROUP BY kernel_key)) "
        "SELECT DISTINCT j.key FROM m, json_each(CASE WHEN json_valid(m.schedule) THEN m.schedule ELSE '{}' END) AS j"
    )
    return frozenset(str(row[0]) for row in connection.tuples(sql, (kernel, NEWEST)))


def candidate_rows(connection: Connection, numbers: Sequence[int]) -> dict[int, Candidate]:
    """The rows with these numbers, at most PAGE_LIMIT; one that is gone, or that can't be read, is left out."""
    wanted = list(numbers[:PAGE_LIMIT])
    marks = ", ".join("?" for _ in wanted)
    sql = _CANDIDATES.format(deployed=_PLACES.format(marks=marks), ranked=f"m.id IN ({marks})")
    rows = connection.rows(f"{sql} {_PAGE}", [*wanted, *(-number for number in wanted), *wanted])
    return {found.number: found for found in connection.readable(rows, _candidate)}


def context_keys(connection: Connection, kernel: str) -> tuple[tuple[str, str, int], ...]:
    """Contexts in which the kernel was measured, with GPU name and count of ranking rows, the newest first."""
    sql = (
        "SELECT m.context_key, c.gpu, count(*) FROM measurement AS m LEFT JOIN context AS c ON c.key = m.context_key "
        "WHERE m.kernel_key = ? GROUP BY m.context_key ORDER BY max(m.id) DESC"
    )
    return tuple((row[0], row[1] or "", int(row[2])) for row in connection.tuples(sql, (kernel,)))


def _kernels(connection: Connection, query: CandidateQuery) -> list[str]:
    """The keys of the kernels that a query asks for."""
    return list(matching_kernels(connection, query.kernel_text)) if query.kernel_text else [query.kernel]


def _order(query: CandidateQuery) -> str:
    """SQL of the order; what has no value comes last in both directions."""
    way = "DESC" if query.descending else "ASC"
    if query.sort == BEST:
        return f"coalesce(c.deploy_us, c.us) IS NULL, c.deploy_us IS NULL {way}, coalesce(c.deploy_us, c.us) {way}"
    if query.sort not in NUMBERS:
        raise StoreError(f"rows can't be sorted by {query.sort!r}; the columns are {', '.join((BEST, *NUMBERS))}")
    return f"{NUMBERS[query.sort]} IS NULL, {NUMBERS[query.sort]} {way}"


def _term(condition: Condition, parameters: list[object]) -> str:
    """SQL for one condition; its values go to `parameters`."""
    field, compared, value = condition.field, condition.compared, condition.value
    if field == REGIME:
        wanted = "c.deploy_status IS NOT NULL" if value == "deploy" else "c.number > 0"
        return wanted if compared is Compared.IS else f"NOT ({wanted})"
    if field == BY:
        wanted = f"c.deploy_us IS {'NOT NULL' if value == 'deploy' else 'NULL AND c.us IS NOT NULL'}"
        return wanted if compared is Compared.IS else f"NOT ({wanted})"
    if field in _COMPARED_NUMBERS:
        column = _COMPARED_NUMBERS[field]
        if condition.within and compared in (Compared.IS, Compared.IS_NOT):
            parameters += [float(value) - condition.within, float(value) + condition.within]
            return f"({column} {'' if compared is Compared.IS else 'NOT '}BETWEEN ? AND ?)"
        parameters.append(float(value) + margin(condition))
        return f"{column} {compared} ?"
    if field in TEXTS:
        return _text_term(f"coalesce({TEXTS[field]}, '')", compared, str(value), parameters)
    path = '$."' + field.replace('"', "") + '"'
    if compared not in (Compared.IS, Compared.IS_NOT):
        parameters += [path, path, value]
        return f"(json_type({_KNOBS}, ?) = 'integer' AND json_extract({_KNOBS}, ?) {compared} ?)"
    parameters += [path, path]
    shown = (
        f"coalesce(CASE json_type({_KNOBS}, ?) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' END, "
        f"CAST(json_extract({_KNOBS}, ?) AS TEXT), '')"
    )
    return _text_term(shown, compared, str(value), parameters)


def margin(condition: Condition) -> float:
    """What `within` adds to the bound of a condition that orders."""
    wider = condition.compared in (Compared.AT_MOST, Compared.ABOVE)
    return condition.within if wider else -condition.within


def _text_term(column: str, compared: Compared, value: str, parameters: list[object]) -> str:
    negated = "NOT " if compared is Compared.IS_NOT else ""
    value = value.casefold()
    if "*" not in value:
        parameters.append(value)
        return f"{negated}lower({column}) = ?"
    parameters.append(value.replace("[", "[[]").replace("?", "[?]"))
    return f"{negated}lower({column}) GLOB ?"


def _candidate(row: Row) -> Candidate:
    place = (Regime.RANKING, row["number"]) if row["number"] > 0 else (Regime.DEPLOY, row["key"])
    with named_row(candidate_row(*place, row["kernel_key"])):
        return checked(_unchecked(row))


def _unchecked(row: Row) -> Candidate:
    return Candidate(
        number=row["number"],
        kernel=row["kernel_key"],
        label=row["kernel_label"],
        context=row["context_key"],
        schedule=read_knobs(row["schedule"]),
        status=row["status"] or "",
        us=time_or_none(row["us"]),
        low_us=time_or_none(row["low_us"]),
        high_us=time_or_none(row["high_us"]),
        deploy_us=time_or_none(row["deploy_us"]),
        registers=row["registers"],
        spills=row["spills"],
        shared_bytes=row["shared_bytes"],
        compile_s=unreal(row["compile_s"]),
        error=unreal(row["error"]),
        failure=row["failure"] or "",
        cause=row["cause"] or "",
        run=row["run"] or "",
        trial=row["trial"] or 0,
        measured_at=unreal(row["measured_at"]),
        pinned=bool(row["pinned"]),
        code_bytes=row["code_bytes"],
    )
