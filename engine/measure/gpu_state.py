"""What else a time depended on: the clocks, heat and company of the GPU while it was taken, and when that is a warning.

A warning is a sentence for a person and a row for later. It never takes a measurement away.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Throttle(StrEnum):
    """Why the clocks are below what the GPU may run at (NVML's clocks event reasons, without those of an idle GPU)."""

    POWER_CAP = "power cap"
    HARDWARE = "hardware slowdown"
    HEAT = "heat"
    HARDWARE_HEAT = "hardware thermal slowdown"
    POWER_BRAKE = "power brake"


@dataclass(frozen=True, slots=True)
class GpuState:
    """One look at a GPU at `at` (seconds since 1970, UTC); what the driver doesn't tell is None.

    Clocks are in MHz; `busy_share` is the driver's own, 0 to 1. `others` are the processes that compute there and
    aren't the engine's, as "pid name" ("" where the system hides which process it is).
    """

    at: float
    sm_mhz: int | None = None
    sm_max_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    busy_share: float | None = None
    throttle: tuple[Throttle, ...] | None = None
    others: tuple[str, ...] | None = None

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> GpuState:
        """Read back what `dataclasses.asdict` made of one, after a trip through JSON."""
        throttle, others = data.pop("throttle"), data.pop("others")
        return cls(
            **data,
            throttle=None if throttle is None else tuple(Throttle(reason) for reason in throttle),
            others=None if others is None else tuple(others),
        )


_SENTENCES = {
    Throttle.POWER_CAP: "the GPU runs at its power limit and lowers its clocks under load: times depend on the data",
    Throttle.HARDWARE: "the hardware slows the GPU's clocks down: times are longer than they need be",
    Throttle.HEAT: "the GPU is hot and lowers its clocks: times are longer than they need be",
    Throttle.HARDWARE_HEAT: "the GPU is too hot and halves its clocks: times are longer than they need be",
    Throttle.POWER_BRAKE: "the machine's power supply brakes the GPU: times are longer than they need be",
}


class Guard:
    """Says once of each trouble of a run that there is one. It judges; it stops and drops nothing."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def warnings(self, state: GpuState) -> list[str]:
        """What there is to say of this state that was not said before, as sentences."""
        found = {str(reason): _SENTENCES[reason] for reason in state.throttle or ()}
        if state.others:
            named = ", ".join(other or "one that the system hides" for other in state.others)
            found["others"] = f"other processes compute on this GPU ({named}): times depend on what they do"
        fresh = [sentence for trouble, sentence in found.items() if trouble not in self._said]
        self._said.update(found)
        return fresh
