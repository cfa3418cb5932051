"""How the devices of a run are: their processes, their GPUs, and what those can do at their best.

Where an event tells of several things, its tuples hold a value for each, in one order.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.event_words import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(Event):
    """Shares are of the run's wall time so far, 0 to 1. `respawns` counts replaced workers and compilers.

    `noise_us` and `noise_share` are the noise floor: what a kernel timed against itself differs by, in us and as a
    share of its time; None until it has been measured. `missing` says what the devices do without, and why.
    """

    search_share: float
    gpu_idle_share: float
    compiling: int
    respawns: int
    noise_us: float | None = None
    noise_share: float | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSampled(Event):
    """One look at the GPU of `device`; what its driver doesn't tell is None.

    Clocks are in MHz. `throttle` names why they are lowered; `others` are the other processes that compute there.
    """

    device: str
    sm_mhz: int | None = None
    sm_max_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    busy_share: float | None = None
    throttle: tuple[str, ...] | None = None
    others: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilersSeen(Event):
    """The compiles that run at this moment, the oldest first; none where nothing compiles.

    `numbers` name them to `Device.kill_compile`, each for one compile and never again; `kernels` are structural keys
    ("" where it is of no kernel's search), `schedules` as text. `ages_s` are in seconds.
    """

    numbers: tuple[int, ...] = ()
    kernels: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    ages_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersSeen(Event):
    """The benchmark process of each device and what it is in: a step such as "check" or "timing", "" while it waits.

    `kernels` and `schedules` say whose step that is ("" for nobody's); `ages_s` is how long it has been in it.
    """

    devices: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    steps: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    ages_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Respawned(Event):
    """A candidate took a process of `device` down: its benchmark process, or ("compiler") one that compiles.

    `kernel` is the candidate's structural key and `schedule` its schedule as text ("" for an assembled grouping).
    """

    device: str
    process: str
    kernel: str
    schedule: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingsMeasured(Event):
    """What the GPU can do at its best, as measured: a copy in GB/s, and matmuls of `kinds` in TFLOP/s."""

    device: str
    copy_gbs: float
    kinds: tuple[str, ...]
    tflops: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorFound(Event):
    """No schedule of the kernel can be faster than `floor_us` on this GPU; `bound` is "memory" or "compute"."""

    kernel: str
    floor_us: float
    bound: str
