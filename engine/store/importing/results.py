"""What a file of another tuner holds, in our words, whatever the format: one kernel, one GPU, its recorded points.

The recorded points are the whole space: the rules that made them are the other tool's. A knob keeps its name and its
value; a value that is none of ours (a fraction, null, a list) is kept as its JSON text. The time of a point is the
number that its tuner compared, so a search over it meets the landscape that theirs met; the launches are kept beside.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from engine.ir.foreign import FOREIGN, MAX_NAME, MAX_PARAMETERS, NO_BODY, Identity
from engine.ir.kernel import Kernel
from engine.store.errors import StoreError
from engine.vocabulary import BuildReport, Context, Failure, FailureKind, KnobValue, Schedule, Timing

UNRECORDED_GPU = "unrecorded GPU"
SHORTEST_TIME, FAILED_TIME = 1e-20, 1e20
"""Older files write a time this large in place of a failure."""


class NotResults(StoreError):
    """A file that can't be imported, in one sentence that names it."""


@dataclass(frozen=True, slots=True)
class ForeignRow:
    """One recorded point: a time or a failure. Times in us, build and run times in s, `at` in s since 1970 (UTC)."""

    schedule: Schedule
    timing: Timing | None
    failure: Failure | None
    build: BuildReport
    run_s: float | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class ForeignResults:
    """`rows` hold each point once. `origin` is the format's name, for people."""

    kernel: Kernel
    context: Context
    origin: str
    rows: tuple[ForeignRow, ...]


def foreign_results(name: str, problem: str, gpu: str, origin: str, rows: Iterable[ForeignRow]) -> ForeignResults:
    """Of a point that occurs twice, the first time stays, and a time replaces a failure. Raises NotResults."""
    kept: dict[Schedule, ForeignRow] = {}
    for row in rows:
        known = kept.get(row.schedule)
        if known is None or (known.timing is None and row.timing is not None):
            kept[row.schedule] = row
    if not kept:
        raise NotResults("it holds no configurations, so there is nothing to import")
    parameters = {knob: None for schedule in kept for knob, _ in schedule.knobs}
    if len(parameters) > MAX_PARAMETERS:
        raise NotResults(f"it names {len(parameters)} tuning parameters, and {MAX_PARAMETERS} is the most that is read")
    identity = Identity.of(name, problem, tuple(parameters))
    if not identity.name:
        raise NotResults("it doesn't name its kernel: give --kernel NAME")
    kernel = Kernel(FOREIGN, NO_BODY, identity.name, identity)
    context = Context(gpu.strip() or UNRECORDED_GPU, "", "", "", "", "")
    return ForeignResults(kernel, context, origin, tuple(kept.values()))


def schedule_of(configuration: object) -> Schedule:
    """The knobs of one configuration, by name and value. Raises NotResults."""
    if not isinstance(configuration, Mapping) or not configuration:
        raise NotResults("a configuration is no object of named parameters")
    for name in configuration:
        if not name or len(name) > MAX_NAME or not name.isprintable():
            raise NotResults(f"a tuning parameter has the unusable name {name[:40]!r}")
    return Schedule.of({name: knob_value(value) for name, value in configuration.items()})


def knob_value(value: Any) -> KnobValue:
    """Whole numbers, truth values and texts as they are; anything else as its JSON text."""
    return value if isinstance(value, int | str) else json.dumps(value, sort_keys=True, separators=(",", ":"))


def timing_of(value: float, samples: object, us: float) -> Timing:
    """`value` and `samples` are in units of `us` microseconds; low and high are the 10th and 90th percentile."""
    times = [float(sample) for sample in samples if is_time(sample)] if isinstance(samples, list) else []
    ordered = sorted(times) or [value]
    low, high = (ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.1, 0.9))
    return Timing(value * us, min(low, value) * us, max(high, value) * us, tuple(time * us for time in times))


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_time(value: object) -> bool:
    """Whether it is a time that something can take, in any unit: finite, above zero, and no stand-in for a failure."""
    return is_number(value) and SHORTEST_TIME <= float(str(value)) < FAILED_TIME


def impossible(value: object) -> Failure:
    """The failure that a number stands for that is no time."""
    if is_number(value) and float(str(value)) < SHORTEST_TIME:
        return Failure(FailureKind.IMPOSSIBLE_TIME, f"recorded with the time {value}")
    return Failure(FailureKind.RUNTIME_ERROR, f"recorded without a time ({value})")


def seconds(milliseconds: object) -> float | None:
    return float(str(milliseconds)) / 1000 if is_number(milliseconds) else None


def moment(text: object) -> float | None:
    """A timestamp in seconds since 1970; one without a zone counts as UTC, and an unreadable one as none."""
    try:
        read = datetime.fromisoformat(text) if isinstance(text, str) else None
        return None if read is None else (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def problem_text(size: object) -> str:
    """A problem size as people write it: 4096x4096."""
    if isinstance(size, Sequence) and not isinstance(size, str):
        return "x".join(str(extent) for extent in size)
    return "" if size is None else str(size)
