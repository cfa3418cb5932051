"""What a run tells of its devices: health, noise floor, clocks and heat, and a warning when times may not be trusted.

A warning is told once and takes nothing away: what was measured under it stays, and the looks beside it say when.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from engine.measure import DeviceHealth, GpuState, Guard


class Watch:
    """What of a run's devices was told already. Any thread of the run may ask; each news is given once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guards: dict[str, Guard] = {}
        self._told: dict[str, float] = {}
        self._unsampled: set[str] = set()

    def fresh_states(self, health: DeviceHealth) -> list[tuple[str, GpuState]]:
        """The looks at GPUs that are newer than those given before, by the device's name."""
        with self._lock:
            fresh = [(name, state) for name, state in health.states if self._told.get(name) != state.at]
            self._told.update({name: state.at for name, state in fresh})
            return fresh

    def warnings(self, states: list[tuple[str, GpuState]]) -> list[str]:
        """What these looks give cause to warn of and was not warned of before, as sentences that name the device."""
        with self._lock:
            return list(self._warnings(states))

    def unsampled(self, health: DeviceHealth) -> list[str]:
        """Why a device is not looked at, each reason once."""
        with self._lock:
            fresh = [reason for reason in dict.fromkeys(health.unsampled) if reason not in self._unsampled]
            self._unsampled.update(fresh)
            return fresh

    def _warnings(self, states: list[tuple[str, GpuState]]) -> Iterator[str]:
        for name, state in states:
            for sentence in self._guards.setdefault(name, Guard()).warnings(state):
                yield f"{name}: {sentence}"
