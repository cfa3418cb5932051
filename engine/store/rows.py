"""Values to columns and back, without loss: what SQLite can't hold as it is, and what a hostile row can't smuggle in.

SQLite turns NaN into NULL, so NaN is kept as text; a reader gets the same float again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

from engine.ir import GraphError
from engine.store.errors import BadRow, plain_cause
from engine.store.normalize import normalize_cause
from engine.store.typed import NoText, WrongValue, checked
from engine.vocabulary import (
    BuildReport,
    Failure,
    FailureKind,
    KnobValue,
    Measurement,
    Regime,
    Schedule,
    Status,
    Timing,
)

RANKING_COLUMNS = {
    "status": "status",
    "us": "median_us",
    "low_us": "low_us",
    "high_us": "high_us",
    "samples": "samples",
    "failure": "failure_kind",
    "cause": "cause",
    "normalized_cause": "normalized_cause",
    "registers": "registers",
    "spills": "spills",
    "shared_bytes": "shared_bytes",
    "compile_s": "compile_s",
    "code_bytes": "code_bytes",
    "run_s": "run_s",
    "error": "error",
}
"""Field of a measurement -> its column in `measurement`."""

DEPLOY_COLUMNS = {field: f"deploy_{field}" for field in RANKING_COLUMNS}
"""Field of a measurement -> its column in `node`."""


@dataclass(frozen=True, slots=True)
class AssemblyColumns:
    """The columns of a row that hold how one graph did: of a grouping's, for one way to launch it, or of `assembly`."""

    us: str
    low_us: str
    high_us: str
    samples: str
    error: str
    failure_kind: str
    cause: str


ASSEMBLED_COLUMNS = AssemblyColumns(
    *("assembled_us", "assembled_low_us", "assembled_high_us", "assembled_samples", "error", "failure_kind", "cause")
)
TRIED_COLUMNS = AssemblyColumns(*("us", "low_us", "high_us", "samples", "error", "failure_kind", "cause"))
PDL_COLUMNS = AssemblyColumns(
    *("pdl_us", "pdl_low_us", "pdl_high_us", "pdl_samples", "pdl_error", "pdl_failure_kind", "pdl_cause")
)


SHORTEST_US = 1e-30
"""Nothing is as short; what is shorter has no finite reciprocal, which a search goes by."""


def real(value: float | None) -> float | str | None:
    return "NaN" if value is not None and math.isnan(value) else value


def unreal(value: Any) -> float | None:
    return None if value is None else float(value)


def time_us(value: Any, *, may_be_zero: bool = False) -> float:
    """A time of a row, in us. Raises ValueError for what is none: no number, not finite, or not above zero."""
    if type(value) in (float, int) and (SHORTEST_US <= value < math.inf or (may_be_zero and value == 0)):
        return float(value)
    raise WrongValue(f"{str(value)[:40]!r} is no time, which is a finite number of us above zero", "a time")


def time_or_none(value: Any, *, may_be_zero: bool = False) -> float | None:
    """`time_us`, or None where the column holds none. Raises ValueError."""
    return None if value is None else time_us(value, may_be_zero=may_be_zero)


def a_time(column: str) -> str:
    """The condition in SQL that a column holds what `time_us` takes."""
    return f"(typeof({column}) IN ('real', 'integer') AND {column} >= {SHORTEST_US} AND {column} < 9e999)"


def text(value: str) -> str:
    """Text that any SQLite and any terminal accepts: a lone surrogate becomes its escape."""
    return value.encode("utf-8", "backslashreplace").decode()


def samples_text(timing: Timing | None) -> str | None:
    return json.dumps(timing.samples, separators=(",", ":")) if timing else None


def outcome_columns(measurement: Measurement, columns: Mapping[str, str]) -> dict[str, Any]:
    """The outcome of a measurement under the column names of its table."""
    timing, failure, build = measurement.timing, measurement.failure, measurement.build
    cause = text(failure.cause) if failure else None
    values = {
        "status": str(measurement.status),
        "us": real(timing.median_us) if timing else None,
        "low_us": real(timing.low_us) if timing else None,
        "high_us": real(timing.high_us) if timing else None,
        "samples": samples_text(timing),
        "failure": str(failure.kind) if failure else None,
        "cause": cause,
        "normalized_cause": normalize_cause(cause) if cause is not None else None,
        "registers": build.registers,
        "spills": build.spills,
        "shared_bytes": build.shared_bytes,
        "compile_s": real(build.compile_s),
        "code_bytes": build.code_bytes,
        "run_s": real(measurement.run_s),
        "error": real(measurement.error),
    }
    return {column: values[field] for field, column in columns.items()}


@dataclass(frozen=True, slots=True)
class RowName:
    """How sentences name a row: its table, what numbers it there, and what it is about ("" where that says enough)."""

    table: str
    number: object
    about: str = ""

    def __str__(self) -> str:
        return f"row {self.number} of table {self.table}" + (f" ({self.about})" if self.about else "")


def candidate_row(regime: Regime, number: object, kernel: object) -> RowName:
    """What a sentence calls the row of a candidate: the same wherever it is met, so that it is told once.

    `number` is the id of a row of `measurement`, the key of a row of `node`.
    """
    table = "measurement" if regime is Regime.RANKING else "node"
    return RowName(table, number, f"a {regime} row of kernel {kernel}")


def read_measurement(row: Mapping[str, Any], regime: Regime) -> Measurement:
    """A row of `measurement` or a deploy row of `node`, marked as cached. Raises BadRow."""
    columns = RANKING_COLUMNS if regime is Regime.RANKING else DEPLOY_COLUMNS
    number = row["id"] if regime is Regime.RANKING else row["key"]
    with named_row(candidate_row(regime, number, row["kernel_key"])):
        value = {field: row[column] for field, column in columns.items()}
        if NoText in map(type, row.values()):
            raise ValueError("a text in it is no UTF-8")
        timing = read_timing(value["us"], value["low_us"], value["high_us"], value["samples"])
        if timing is None and value["status"] == Status.OK:
            raise ValueError("it is ok and holds no time")
        return Measurement(
            kernel_key=str(row["kernel_key"]),
            schedule=Schedule.from_key(row["schedule"]),
            regime=regime,
            context_key=str(row["context_key"]),
            status=Status(value["status"]),
            timing=timing,
            failure=read_failure(value["failure"], value["cause"]),
            build=checked(
                BuildReport(
                    registers=value["registers"],
                    spills=value["spills"],
                    shared_bytes=value["shared_bytes"],
                    compile_s=unreal(value["compile_s"]),
                    code_bytes=value["code_bytes"],
                )
            ),
            error=unreal(value["error"]),
            run_s=unreal(value["run_s"]),
            cached=True,
        )


def read_timing(us: Any, low_us: Any, high_us: Any, samples: Any) -> Timing | None:
    """Times in us, `samples` as JSON; None without a median. Raises ValueError and TypeError."""
    if us is None:
        return None
    return Timing(time_us(us), time_us(low_us), time_us(high_us), tuple(map(time_us, json.loads(samples))))


def read_failure(kind: Any, cause: Any) -> Failure | None:
    return Failure(FailureKind(kind), str(cause)) if kind else None


def read_knobs(key: str) -> dict[str, KnobValue]:
    """Raises what a schedule's key that is none raises: use it inside `named_row`."""
    return Schedule.from_key(key).as_dict()


def read_many_knobs(keys: Sequence[str], names: Callable[[int], RowName]) -> list[dict[str, KnobValue] | BadRow]:
    """The knobs of many schedules in one go, about ten times as fast as one by one; what is wrong in place of one that
    can't be read. `names` says which row a position is of."""
    with suppress(ValueError, RecursionError):
        parsed = json.loads(f"[{','.join(keys)}]")
        if len(parsed) == len(keys) and set(map(type, parsed)) <= {dict}:
            values = chain.from_iterable(map(dict.values, parsed))
            if set(map(type, values)) <= {int, str, bool}:
                return list(parsed)
    found: list[dict[str, KnobValue] | BadRow] = []
    for position, key in enumerate(keys):
        try:
            with named_row(names(position)):
                found.append(read_knobs(key))
        except BadRow as error:
            found.append(error)
    return found


def schedules_text(schedules: Mapping[str, Schedule]) -> str:
    """Canonical JSON of the schedule of each kernel: equal assignments have equal texts."""
    return json.dumps({key: schedules[key].as_dict() for key in sorted(schedules)}, sort_keys=True)


def read_schedules(key: str | None) -> dict[str, Schedule]:
    parsed = json.loads(key) if key else {}
    if not isinstance(parsed, dict):
        raise ValueError("the schedules of a grouping are an object")
    return {name: Schedule.from_key(json.dumps(knobs)) for name, knobs in parsed.items()}


def _cause(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"a text in it is no JSON ({error.msg[:1].lower()}{error.msg[1:]})"
    return f"it lacks {error}" if isinstance(error, KeyError) else plain_cause(error)[:200]


@contextmanager
def named_row(name: RowName | str) -> Iterator[None]:
    """Turn whatever a malformed row raises into a BadRow that names the row, or what was read of several."""
    try:
        yield
    except (GraphError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        said = " ".join(f"{str(name)[:200]} can't be read: {_cause(error)}".split())
        table = name.table if isinstance(name, RowName) else name
        wrong = error.promised if isinstance(error, WrongValue) else _cause(error)
        advice = "the rest is read without it: correct or delete that row with sqlite3"
        raise BadRow(f"{said}; {advice}", (table, wrong)) from error
