"""What was timed in turns, as ratios with intervals, and the schedule that a chosen one is timed against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from engine.knobs import parse_knobs
from engine.measure import Difference, NoiseFloor, differences, median_interval, noise_floor
from engine.vocabulary import KnobValue, Schedule

PEER_NAMES = ("eager", "compile", "max-autotune", "helion", "pinned")


@dataclass(frozen=True, slots=True)
class Time:
    """Median of the windows in us with its 95 % interval."""

    us: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """A peer: its time, and how it compares with ours. `difference.ratio` is its time over ours: above 1, ours wins."""

    name: str
    time: Time
    difference: Difference


@dataclass(frozen=True, slots=True)
class Compared:
    """Ours and the peers, from one sitting; `noise` is what ours differs by from itself."""

    ours: Time
    noise: NoiseFloor
    peers: tuple[Ratio, ...]


def compared(names: Sequence[str], windows: Sequence[Sequence[float]]) -> Compared:
    """Windows of ours, ours again and the peers, the i-th of each from round i. Raises ValueError for other lengths."""
    floor = noise_floor(windows[0], windows[1])
    others = [windows[0], *windows[2:]]
    found = differences([others], floor.share) if len(others) > 1 else ()
    peers = tuple(
        Ratio(name, time_of(samples), difference)
        for name, samples, difference in zip(names[2:], windows[2:], found, strict=True)
    )
    return Compared(time_of(windows[0]), floor, peers)


def time_of(samples: Sequence[float]) -> Time:
    """Raises ValueError without samples."""
    interval = median_interval(samples)
    return Time(median(samples), interval.low, interval.high)


def read_knobs(text: str) -> dict[str, KnobValue]:
    """ "BLOCK_M=64, LOADS=pointer": knobs with their values, commas or blanks between them. Raises BadKnobs."""
    return parse_knobs(text.replace(",", " ")).as_dict()


def changed_schedule(schedule: Schedule, knobs: Mapping[str, KnobValue]) -> Schedule | str:
    """The schedule with these knobs, or a sentence why there is no other one."""
    own = schedule.as_dict()
    unknown = [name for name in knobs if name not in own]
    if unknown:
        return f"its schedule has no knob {unknown[0]}; it has {', '.join(own)}"
    changed = Schedule.of({**own, **knobs})
    return "it has these values already" if changed == schedule else changed
