"""How a device is: what its processes are at, which of them candidates took down, and what its GPU looks like.

Everything here is told for people. Nothing in it changes what is measured or what a search does.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.ir.roofline import Ceilings
from engine.measure.gpu_state import GpuState
from engine.measure.noise import NoiseFloor

REMEMBERED_RESPAWNS = 200
"""A device remembers so many of the processes that candidates took down, the latest ones."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Whose work it is: a structural key and a schedule as text; both "" for what is no candidate's."""

    kernel: str = ""
    schedule: str = ""


NOBODY = Candidate()


@dataclass(frozen=True, slots=True)
class Compiling:
    """A compile that runs since `age_s` seconds. `number` names it to `Device.kill_compile`, and never another one."""

    number: int
    candidate: Candidate
    age_s: float


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A benchmark process of a device, since `age_s` seconds in `step`; "" while it waits for work.

    In step "spare" it stands by to take over, and nothing has run in it.
    """

    device: str
    pid: int
    step: str
    candidate: Candidate
    age_s: float


@dataclass(frozen=True, slots=True)
class Respawn:
    """A process that a candidate took down at `at` (seconds since 1970, UTC), and why.

    `process` is "benchmark" or "compiler"; `device` is "" for a compiler, which works for several.
    """

    at: float
    device: str
    process: str
    candidate: Candidate
    cause: str


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """`busy_s` is how long the benchmark worker was checking and timing, in seconds since the device opened.

    `noise` and `ceilings` are None until they are measured, which an open device does before its first candidate.
    `states` holds the latest look at each GPU by the device's name, `missing` says what the device does without, such
    as these looks, and why. `respawns` counts replaced benchmark processes; `respawned` tells of the latest replaced of
    any kind. A spare that stands by is among `workers`, and no respawn.
    `disk_full` says where compiles wait for space on a disk, "" while there is some.
    """

    busy_s: float = 0.0
    compiling: int = 0
    respawns: int = 0
    noise: NoiseFloor | None = None
    states: tuple[tuple[str, GpuState], ...] = ()
    missing: tuple[str, ...] = ()
    compiles: tuple[Compiling, ...] = ()
    workers: tuple[WorkerState, ...] = ()
    respawned: tuple[Respawn, ...] = ()
    ceilings: Ceilings | None = None
    disk_full: str = ""
