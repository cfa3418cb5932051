"""Kernel Tuner cache files: `cache` has one entry a configuration, `time` in ms or the name of the failure.

Layout: the cache files of Kernel Tuner 0.x and 1.x, as in AutoTuningAssociation/benchmark_hub.
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

NAME = "Kernel Tuner cache"
MS_US = 1000.0
_KINDS = {
    "InvalidConfig": FailureKind.ILLEGAL,
    "CompilationFailedConfig": FailureKind.COMPILE_ERROR,
    "RuntimeFailedConfig": FailureKind.RUNTIME_ERROR,
}


def recognizes(document: Mapping[str, Any]) -> bool:
    return "cache" in document and "tune_params_keys" in document


def names_kernel(document: Mapping[str, Any]) -> bool:
    return bool(document.get("kernel_name"))


def read(document: Mapping[str, Any], name: str, gpu: str) -> ForeignResults:
    """`name` and `gpu`, where given, stand in place of what the file says. Raises NotResults."""
    cache, names = document["cache"], document["tune_params_keys"]
    if not isinstance(cache, dict) or not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise NotResults("its cache is no table of configurations")
    rows = [_row(key, entry, names) for key, entry in cache.items()]
    if rows and not any(row.timing or row.failure for row in rows):
        raise NotResults("its entries have no `time`, and nothing else can be imported")
    return foreign_results(
        name or str(document.get("kernel_name") or ""),
        problem_text(document.get("problem_size")),
        gpu or str(document.get("device_name") or ""),
        NAME,
        rows,
    )


def _row(key: str, entry: object, names: list[str]) -> ForeignRow:
    if not isinstance(entry, dict):
        raise NotResults(f"its entry {key[:60]!r} is no object")
    missing = [one for one in (*names, "time") if one not in entry]
    if missing:
        raise NotResults(f"its entry {key[:60]!r} lacks {missing[0]!r}")
    time = entry["time"]
    return ForeignRow(
        schedule=schedule_of({one: entry[one] for one in names}),
        timing=timing_of(float(time), entry.get("times"), MS_US) if is_time(time) else None,
        failure=None if is_time(time) else _failure(key, time),
        build=BuildReport(compile_s=seconds(entry.get("compile_time"))),
        run_s=seconds(entry.get("benchmark_time")),
        at=moment(entry.get("timestamp")),
    )


def _failure(key: str, time: object) -> Failure:
    if isinstance(time, str) and time:
        return Failure(_KINDS.get(time, FailureKind.RUNTIME_ERROR), time[:200])
    if is_number(time):
        return impossible(time)
    raise NotResults(f"its entry {key[:60]!r} has a `time` that is neither a number nor the name of a failure")
