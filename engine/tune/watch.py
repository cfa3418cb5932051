"""What a run tells of its devices: health, noise floor, clocks and heat, and a warning when times may not be trusted.

A warning is told once and takes nothing away: what was measured under it stays, and the looks beside it say when.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from engine.events import CompilersSeen, Event, Respawned, WorkersSeen
from engine.measure import DeviceHealth, GpuState, Guard, Respawn


class Watch:
    """What of a run's devices was told already. Any thread of the run may ask; each news is given once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._guards: dict[str, Guard] = {}
        self._told: dict[str, float] = {}
        self._missing: set[str] = set()
        self._respawned: set[Respawn] = set()
        self._compiled = False

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

    def missing(self, health: DeviceHealth) -> list[str]:
        """What a device does without, each reason once."""
        with self._lock:
            fresh = [reason for reason in dict.fromkeys(health.missing) if reason not in self._missing]
            self._missing.update(fresh)
            return fresh

    def processes(self, health: DeviceHealth) -> list[tuple[type[Event], dict[str, Any]]]:
        """What compiles, what the benchmark processes are at, and which processes were lost since the last call."""
        with self._lock:
            told: list[tuple[type[Event], dict[str, Any]]] = []
            if health.compiles or self._compiled:
                told.append((CompilersSeen, _compiles(health)))
            self._compiled = bool(health.compiles)
            if health.workers:
                told.append((WorkersSeen, _workers(health)))
            fresh = [one for one in health.respawned if one not in self._respawned]
            self._respawned.update(fresh)
            return told + [(Respawned, _respawn(one)) for one in fresh]

    def _warnings(self, states: list[tuple[str, GpuState]]) -> Iterator[str]:
        for name, state in states:
            for sentence in self._guards.setdefault(name, Guard()).warnings(state):
                yield f"{name}: {sentence}"


def _compiles(health: DeviceHealth) -> dict[str, Any]:
    return {
        "numbers": tuple(one.number for one in health.compiles),
        "kernels": tuple(one.candidate.kernel for one in health.compiles),
        "schedules": tuple(one.candidate.schedule for one in health.compiles),
        "ages_s": tuple(round(one.age_s, 3) for one in health.compiles),
    }


def _workers(health: DeviceHealth) -> dict[str, Any]:
    return {
        "devices": tuple(one.device for one in health.workers),
        "pids": tuple(one.pid for one in health.workers),
        "steps": tuple(one.step for one in health.workers),
        "kernels": tuple(one.candidate.kernel for one in health.workers),
        "schedules": tuple(one.candidate.schedule for one in health.workers),
        "ages_s": tuple(round(one.age_s, 3) for one in health.workers),
    }


def _respawn(one: Respawn) -> dict[str, Any]:
    candidate = one.candidate
    return {
        "device": one.device,
        "process": one.process,
        "kernel": candidate.kernel,
        "schedule": candidate.schedule,
        "cause": one.cause,
    }
