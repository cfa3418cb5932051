"""T4 files: `results` has one entry a configuration, with its launches, its validity and its measurements.

Layout: the results schema of AutoTuningAssociation/autotuning_methodology, version 1. The format names neither the
kernel nor the GPU, so the caller does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.store.importing.results import (
    ForeignResults,
    ForeignRow,
    NotResults,
    foreign_results,
    impossible,
    is_number,
    is_time,
    moment,
    problem_text,
    schedule_of,
    seconds,
    timing_of,
)
from engine.vocabulary import BuildReport, Failure, FailureKind

NAME = "T4"
CORRECT = "correct"
_KINDS = {
    "constraints": FailureKind.ILLEGAL,
    "compile": FailureKind.COMPILE_ERROR,
    "runtime": FailureKind.RUNTIME_ERROR,
    "timeout": FailureKind.HANG,
    "correctness": FailureKind.WRONG_RESULT,
}
_US = {
    **dict.fromkeys(("s", "seconds", "second"), 1e6),
    **dict.fromkeys(("ms", "milliseconds", "miliseconds", "millisecond", ""), 1e3),
    **dict.fromkeys(("us", "µs", "microseconds", "microsecond"), 1.0),
    **dict.fromkeys(("ns", "nanoseconds", "nanosecond"), 1e-3),
}
"""us in one unit of time; public files spell the unit of their metadata "miliseconds"."""


def recognizes(document: Mapping[str, Any]) -> bool:
    return "results" in document and ("schema_version" in document or "metadata" in document)


def names_kernel(document: Mapping[str, Any]) -> bool:
    return isinstance(document.get("metadata"), dict) and bool(document["metadata"].get("kernel_name"))


def read(document: Mapping[str, Any], name: str, gpu: str) -> ForeignResults:
    """Raises NotResults."""
    results, metadata = document["results"], document.get("metadata") or {}
    if not isinstance(results, list) or not isinstance(metadata, dict):
        raise NotResults("its results are no list")
    unit = str(metadata.get("timeunit") or "")
    rows = [_row(position, entry, unit) for position, entry in enumerate(results)]
    return foreign_results(
        name or str(metadata.get("kernel_name") or ""),
        problem_text(metadata.get("problem_size")),
        gpu or str(metadata.get("device_name") or ""),
        NAME,
        rows,
    )


def _row(position: int, entry: object, unit: str) -> ForeignRow:
    where = f"its result {position + 1}"
    if not isinstance(entry, dict):
        raise NotResults(f"{where} is no object")
    missing = [one for one in ("configuration", "invalidity") if one not in entry]
    if missing:
        raise NotResults(f"{where} lacks {missing[0]!r}")
    said = entry.get("times")
    times: dict[str, Any] = said if isinstance(said, dict) else {}
    value, own_unit = _time(entry, times)
    factor = _US.get((own_unit or unit).strip().lower())
    if factor is None:
        raise NotResults(f"{where} has a time in the unknown unit {(own_unit or unit)[:40]!r}")
    verdict = str(entry["invalidity"])
    failed = verdict != CORRECT or not is_time(value)
    if failed and verdict == CORRECT and value is None:
        raise NotResults(f"{where} is correct and has no time")
    return ForeignRow(
        schedule=schedule_of(entry["configuration"]),
        timing=None if failed else timing_of(float(value), times.get("runtimes"), factor),
        failure=_failure(verdict, value) if failed else None,
        build=BuildReport(compile_s=seconds(times.get("compilation"))),
        at=moment(entry.get("timestamp")),
    )


def _time(entry: dict[str, Any], times: dict[str, Any]) -> tuple[Any, str]:
    """What the measurement called "time" says, or else the mean of the launches; and its unit, "" if unsaid."""
    for measured in entry.get("measurements") or ():
        if isinstance(measured, dict) and measured.get("name") == "time":
            return measured.get("value"), str(measured.get("unit") or "")
    launches = [launch for launch in times.get("runtimes") or () if is_time(launch)]
    return (sum(launches) / len(launches) if launches else None), ""


def _failure(verdict: str, value: object) -> Failure:
    if verdict == CORRECT:
        return impossible(value) if is_number(value) else Failure(FailureKind.RUNTIME_ERROR, str(value)[:200])
    cause = value if isinstance(value, str) and value else verdict
    return Failure(_KINDS.get(verdict, FailureKind.RUNTIME_ERROR), cause[:200])
