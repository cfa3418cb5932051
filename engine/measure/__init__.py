"""Times and failures of candidates: from a GPU, through processes that may die of a candidate, or from a recording."""

from engine.measure.cuda import CudaDevice
from engine.measure.device import AssembledResult, Device, DeviceError, DeviceHealth, PairedTimes
from engine.measure.gpu_state import GpuState, Guard
from engine.measure.noise import Difference, NoiseFloor, differences
from engine.measure.opening import open_device
from engine.measure.regimes import REGIMES, RegimeSettings
from engine.measure.replay import ReplayDevice

__all__ = [
    "REGIMES",
    "AssembledResult",
    "CudaDevice",
    "Device",
    "DeviceError",
    "DeviceHealth",
    "Difference",
    "GpuState",
    "Guard",
    "NoiseFloor",
    "PairedTimes",
    "RegimeSettings",
    "ReplayDevice",
    "differences",
    "open_device",
]
