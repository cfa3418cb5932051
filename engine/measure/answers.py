"""What the benchmark process answered, as the values that the rest of the engine works with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.ir.roofline import Ceilings
from engine.measure.channel import Message
from engine.measure.device import AssembledResult, PairedTimes
from engine.measure.noise import NoiseFloor, noise_floor
from engine.vocabulary import BuildReport, Failure, FailureKind, Measurement, Status, Timing


def failed(blank: Measurement, failure: Failure, build: BuildReport | None = None) -> Measurement:
    return replace(blank, failure=failure, build=build or BuildReport())


def measured(blank: Measurement, compiled: BuildReport, answer: Message) -> Measurement:
    measurement = replace(blank, build=compiled, error=_finite(answer.get("error")), run_s=answer.get("run_s"))
    if failure := failure_in(answer):
        return replace(measurement, failure=failure)
    build = _merged(compiled, answer.get("build") or {})
    return replace(measurement, status=Status.OK, timing=_timing(answer), build=build)


def assembled(answer: Message) -> AssembledResult:
    if failure := failure_in(answer):
        return AssembledResult(None, _finite(answer.get("error")), failure)
    return AssembledResult(_timing(answer), _finite(answer.get("error")))


def paired(answer: Message) -> PairedTimes:
    if failure := failure_in(answer):
        return PairedTimes(failure=failure)
    return PairedTimes(tuple(tuple(map(float, of_one)) for of_one in answer["windows"]))


def noise_of(answer: Message) -> NoiseFloor | None:
    """None where it could not be taken: a run without it is judged by its windows alone."""
    windows = paired(answer).windows if "windows" in answer else ()
    return noise_floor(*windows) if len(windows) == 2 else None


def ceilings_of(answer: Message) -> Ceilings | None:
    """None where they could not be taken: a run without them tells no floors."""
    try:
        return Ceilings.from_text(str(answer["ceilings"]))
    except (KeyError, ValueError):
        return None


def _merged(compiled: BuildReport, loaded: Mapping[str, Any]) -> BuildReport:
    """The compiler's report, with what only the driver knows where the compiler's is silent."""
    return BuildReport(
        compiled.registers if compiled.registers is not None else loaded.get("registers"),
        compiled.spills if compiled.spills is not None else loaded.get("spills"),
        compiled.shared_bytes if compiled.shared_bytes is not None else loaded.get("shared_bytes"),
        compiled.compile_s,
        compiled.code_bytes if compiled.code_bytes is not None else loaded.get("code_bytes"),
    )


def failure_in(answer: Message) -> Failure | None:
    """What went wrong, if the answer says that something did."""
    failure = answer.get("failure")
    return Failure(FailureKind(failure["kind"]), failure["cause"]) if failure else None


def _timing(answer: Message) -> Timing:
    timing = answer["timing"]
    samples: Sequence[float] = timing["samples"]
    return Timing(timing["median_us"], timing["low_us"], timing["high_us"], tuple(samples))


def _finite(error: float | None) -> float | None:
    """NaN and infinity have no JSON form; the cause says what they meant."""
    return error if error is not None and math.isfinite(error) else None
