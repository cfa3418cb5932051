"""The words every room shares, as frozen values.

A knob is a named tuning dimension, a schedule a full assignment of one kernel's knobs, a candidate a kernel
with a schedule, and a measurement one timed or failed candidate in one context and one regime.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import lru_cache

KnobValue = int | str | bool


class Regime(StrEnum):
    """The settings under which a time was taken."""

    RANKING = "ranking"
    DEPLOY = "deploy"


class Verdict(StrEnum):
    """How a candidate compares with the one it was timed beside."""

    FASTER = "faster"
    SLOWER = "slower"
    WITHIN_NOISE = "within noise"


class Status(StrEnum):
    """How a candidate's measurement ended. `NOT_RECORDED` exists on a replay device only."""

    OK = "ok"
    FAILED = "failed"
    NOT_RECORDED = "not recorded"


class FailureKind(StrEnum):
    """What went wrong with a candidate; each is a state of its own in the database and on the screen."""

    ILLEGAL = "illegal schedule"
    COMPILE_ERROR = "compile error"
    COMPILE_TIMEOUT = "compile timeout"
    SHARED_MEMORY = "out of shared memory"
    REGISTERS = "too many registers"
    THREADS = "too many threads"
    WRONG_RESULT = "wrong result"
    ILLEGAL_ACCESS = "illegal access"
    HANG = "hang"
    CRASH = "crash"
    OUT_OF_MEMORY = "out of memory"
    IMPOSSIBLE_TIME = "impossible time"
    RUNTIME_ERROR = "runtime error"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a candidate failed: a kind for grouping, and the cause in one line of plain text."""

    kind: FailureKind
    cause: str


@dataclass(frozen=True, slots=True)
class Option:
    """One answer to a fork, named by the knob values it fixes and by nothing else."""

    knobs: tuple[tuple[str, KnobValue], ...]

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.knobs) or "(none)"


@dataclass(frozen=True, slots=True)
class Fork:
    """A question with several correct answers, in canonical order. No option at all is a dead end."""

    name: str
    options: tuple[Option, ...]


@lru_cache(maxsize=4096, typed=True)  # typed: True and 1 are two values, and two texts
def _knob_text(name: str, value: KnobValue) -> str:
    """A knob as JSON writes it inside an object; the few that there are occur in every schedule's key."""
    return f"{json.dumps(name)}:{json.dumps(value)}"


def knobs_text(knobs: Mapping[str, KnobValue]) -> str:
    """The `key` of the schedule with these knobs."""
    return "{" + ",".join([_knob_text(name, value) for name, value in sorted(knobs.items())]) + "}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A full assignment of one kernel's knobs, sorted by knob name. Build it with `Schedule.of`."""

    knobs: tuple[tuple[str, KnobValue], ...]

    @classmethod
    def of(cls, knobs: Mapping[str, KnobValue]) -> Schedule:
        return cls(tuple(sorted(knobs.items())))

    @classmethod
    def from_key(cls, key: str) -> Schedule:
        """Read back what `key` wrote. Raises ValueError if the text is not a flat JSON object of knob values."""
        parsed = json.loads(key)
        if not isinstance(parsed, dict) or not all(isinstance(v, int | str | bool) for v in parsed.values()):
            raise ValueError(f"not a schedule: {key[:80]!r}")
        return cls.of(parsed)

    @property
    def key(self) -> str:
        """Canonical JSON text: equal schedules have equal keys in any process."""
        return knobs_text(dict(self.knobs))

    def as_dict(self) -> dict[str, KnobValue]:
        return dict(self.knobs)

    def __getitem__(self, name: str) -> KnobValue:
        for knob, value in self.knobs:
            if knob == name:
                return value
        raise KeyError(name)

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.knobs)


@dataclass(frozen=True, slots=True)
class Context:
    """Everything outside the candidate that a time depends on. Times of two contexts are never mixed."""

    gpu: str
    capability: str
    driver: str
    torch: str
    triton: str
    ptxas: str
    cold_l2: bool = False

    @property
    def key(self) -> str:
        """First 16 hex digits of the sha256 of the canonical JSON."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Target:
    """The chip that code is generated for; the defaults are an H200's (CUDA occupancy tables, sm_90).

    `capability` is major * 10 + minor. Sizes are in bytes, bandwidth in bytes/s, peaks in FLOP/s.
    The bandwidth and the bf16 peak are measured on an H200 (large streaming kernels; 8192^3 matmul). `gluon` says
    whether the Triton there compiles kernels in which warps have roles.
    """

    capability: int = 90
    multiprocessors: int = 132
    shared_bytes: int = 232_448
    shared_bytes_per_multiprocessor: int = 233_472
    registers_per_multiprocessor: int = 65_536
    threads_per_multiprocessor: int = 2048
    memory_bandwidth: float = 4.1e12
    peak_bf16: float = 8.0e14
    peak_tf32: float = 4.0e14
    peak_fp32: float = 5.5e13
    gluon: bool = True


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of one candidate in us. `samples` are per-launch averages of repeated windows."""

    median_us: float
    low_us: float
    high_us: float
    samples: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What the compiler said of a candidate: sizes in bytes, the compile's wall time in seconds.

    `code_bytes` is what its machine code takes, padding included.
    """

    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    compile_s: float | None = None
    code_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """One timed or failed candidate, in one context and one regime.

    Exactly one of `timing` and `failure` is set, unless `status` is NOT_RECORDED, when neither is.
    `error` is the relative norm against the reference; `cached` says that no GPU work was done for it.
    """

    kernel_key: str
    schedule: Schedule
    regime: Regime
    context_key: str
    status: Status
    timing: Timing | None = None
    failure: Failure | None = None
    build: BuildReport = BuildReport()
    error: float | None = None
    run_s: float | None = None
    cached: bool = False

    @property
    def us(self) -> float | None:
        return self.timing.median_us if self.timing else None


@dataclass(frozen=True, slots=True)
class Pin:
    """A schedule a person chose for a kernel; who, when (seconds since 1970, UTC) and why are kept."""

    kernel_key: str
    schedule: Schedule
    author: str
    at: float
    note: str = ""


def kernel_target(name: str, key: str) -> str:
    """The target of a run of one kernel alone, where a run of a program has the text that the user typed."""
    return f"kernel {name} {key}"


def is_kernel_target(target: str) -> bool:
    """Whether a run's target is one that `kernel_target` gives."""
    return _KERNEL_TARGET.fullmatch(target) is not None


_KERNEL_TARGET = re.compile(kernel_target(".+", "[0-9a-f]{24}"), re.DOTALL)
