"""Times and failures of candidates: from a GPU, through processes that may die of a candidate, or from a recording."""

from engine.measure.acceptance import Acceptance, Judgement, judge
from engine.measure.assembler import Assembler, ControlsError, candidates, find_assembler, read_assembler
from engine.measure.channel import ChannelClosed, Message
from engine.measure.child_side import open_channel
from engine.measure.controls import NO_OPTIMIZATION, Controls, ControlsFile, option_sha256, read_controls
from engine.measure.counters import CounterReader, CountersError
from engine.measure.cuda import CudaDevice
from engine.measure.device import (
    AssembledResult,
    ComparesGraphs,
    Device,
    DeviceError,
    DeviceHealth,
    PairedTimes,
    Schedules,
    Starts,
    TakesControls,
)
from engine.measure.fidelity import Fidelity, fidelity, misleading
from engine.measure.gate import less_exact_than_eager
from engine.measure.generator import GeneratorError, GeneratorRequest
from engine.measure.gpu_state import GpuState, Guard
from engine.measure.health import Candidate, Compiling, Respawn, WorkerState
from engine.measure.noise import (
    UNKNOWN_FLOOR,
    Difference,
    NoiseFloor,
    apart_margin,
    differences,
    judged_apart,
    median_interval,
    noise_floor,
)
from engine.measure.opening import open_device
from engine.measure.process import Nursery, entry_command
from engine.measure.regimes import REGIMES, RegimeSettings, ranking_kind
from engine.measure.replay import ReplayDevice

__all__ = [
    "NO_OPTIMIZATION",
    "REGIMES",
    "UNKNOWN_FLOOR",
    "Acceptance",
    "AssembledResult",
    "Assembler",
    "Candidate",
    "ChannelClosed",
    "ComparesGraphs",
    "Compiling",
    "Controls",
    "ControlsError",
    "ControlsFile",
    "CounterReader",
    "CountersError",
    "CudaDevice",
    "Device",
    "DeviceError",
    "DeviceHealth",
    "Difference",
    "Fidelity",
    "GeneratorError",
    "GeneratorRequest",
    "GpuState",
    "Guard",
    "Judgement",
    "Message",
    "NoiseFloor",
    "Nursery",
    "PairedTimes",
    "RegimeSettings",
    "ReplayDevice",
    "Respawn",
    "Schedules",
    "Starts",
    "TakesControls",
    "WorkerState",
    "apart_margin",
    "candidates",
    "differences",
    "entry_command",
    "fidelity",
    "find_assembler",
    "judge",
    "judged_apart",
    "less_exact_than_eager",
    "median_interval",
    "misleading",
    "noise_floor",
    "open_channel",
    "open_device",
    "option_sha256",
    "ranking_kind",
    "read_assembler",
    "read_controls",
]
