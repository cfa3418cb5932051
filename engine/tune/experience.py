"""In which order a kernel's search tries controls on a schedule: what helped its other schedules first.

No prior knows what is in a controls file, so a search learns it: how each file's times compare with those of the same
schedules without controls. One that nobody tried yet counts as a small gain, so that each is tried on some schedule;
one that computes nonsense or doesn't assemble comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from engine.codegen import acf_of
from engine.search import Path, Scorer
from engine.vocabulary import Measurement, Option, Schedule

UNTRIED = 0.97
USELESS = 10.0
FIRST = 1.001
HAIR = 1e-6


def without_controls(schedule: Schedule) -> Schedule:
    """The schedule's knobs but that of the controls file."""
    return Schedule(tuple(knob for knob in schedule.knobs if knob[0] != "ACF"))


class Experience:
    """What one kernel's search knows of controls. Depends on the order of its answers alone, as the search does."""

    def __init__(self, offered: Sequence[str]) -> None:
        self._offered = tuple(offered)
        self._plain: dict[Schedule, float] = {}
        self._answers: dict[str, list[tuple[Schedule, float | None]]] = {acf: [] for acf in self._offered}
        self._led = dict.fromkeys(self._offered, 0)

    @property
    def offered(self) -> tuple[str, ...]:
        """The files that this kernel's search may try."""
        return self._offered

    def learn(self, measurement: Measurement) -> None:
        """Take in one answered candidate; a failed one says as much."""
        acf = acf_of(measurement.schedule)
        schedule = without_controls(measurement.schedule)
        if acf in self._answers:
            self._answers[acf].append((schedule, measurement.us))
        elif measurement.us is not None:
            self._plain[schedule] = measurement.us

    def guiding(self, scorer: Scorer) -> Scorer:
        """The scorer, but for the fork of controls, where this is what is known. None at all stays the best answer."""

        def score(path: Path, options: Sequence[Option]) -> Sequence[float]:
            named = [acf_of(Schedule(option.knobs)) for option in options]
            if not self._offered or any(option.knobs[0][0] != "ACF" for option in options if option.knobs):
                return scorer(path, options)
            speeds = [self._speed(acf) if acf else 0.0 for acf in named]
            best = max(speeds)
            self._led[named[speeds.index(best)]] = self._led.get(named[speeds.index(best)], 0) + 1
            return [speed or best * FIRST for speed in speeds]

        return score

    def _speed(self, acf: str) -> float:
        """Of equals the one that led least often is a hair faster."""
        return 1.0 / (self.ratio(acf) + HAIR * self._led.get(acf, 0))

    def ratio(self, acf: str) -> float:
        """The expected time with a file over that without."""
        answers = self._answers.get(acf, [])
        failed = sum(us is None for _, us in answers)
        ratios = [us / self._plain[schedule] for schedule, us in answers if us is not None and schedule in self._plain]
        if failed > len(ratios):
            return USELESS
        return median(ratios) if ratios else UNTRIED
