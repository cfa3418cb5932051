"""How each run searched a kernel with ptxas controls: how long, how many failed, what was set aside, what came out.

It is read from the journals of the runs, so that a search with the schedules (joint) and one after them stand side by
side as they were, with what each of them cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.events import ControlsChecked, Event, KernelFinished, KernelStarted, Measured
from engine.store import Store, StoredRun
from engine.vocabulary import Regime, Status

KNOB_TEXT = "ACF="
NO_FILE = "none"
JOINT, AFTER = "joint", "after"


@dataclass(frozen=True, slots=True)
class ControlsSearch:
    """One run's search of one kernel; times in us, `seconds` from its start to its end (None: it did not end).

    `tried` candidates had a file and `failed` of these failed. The best times are those of the deploy regime, where
    there is one, and of the run alone. `used` is the file that the search ended with.
    `set_aside` are files that only failed, each with how.
    """

    run: str
    mode: str
    ended: str
    seconds: float | None
    candidates: int
    cached: int
    tried: int
    failed: int
    best_without_us: float | None
    best_with_us: float | None
    used: str
    used_us: float | None
    set_aside: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Told:
    """What a run's journal says of one kernel; `us` by regime and by whether there was a file."""

    started: float | None = None
    ended: KernelFinished | None = None
    candidates: int = 0
    cached: int = 0
    tried: int = 0
    failed: int = 0
    us: dict[tuple[str, bool], float] = field(default_factory=dict)

    def take(self, event: Measured) -> None:
        controlled = bool(_file_in(event.schedule))
        if event.us is not None:
            at = (event.regime, controlled)
            self.us[at] = min(event.us, self.us.get(at, event.us))
        if not event.trial:
            return
        self.candidates += 1
        self.cached += event.cached
        self.tried += controlled
        self.failed += controlled and event.status == Status.FAILED

    def best_us(self, controlled: bool) -> float | None:
        return self.us.get((Regime.DEPLOY, controlled), self.us.get((Regime.RANKING, controlled)))


def controls_searches(store: Store, names: Mapping[str, str]) -> dict[tuple[str, str], list[ControlsSearch]]:
    """By kernel and context: the searches of runs in which controls were on, oldest first."""
    found: dict[tuple[str, str], list[ControlsSearch]] = {}
    for run in store.runs():
        checked = store.controls_checked(run.id)
        if checked is None or not checked.on:
            continue
        for kernel, told in _kernels(store.events_of(run.id)).items():
            if told.tried:
                found.setdefault((kernel, run.context_key), []).append(_search(run, kernel, told, checked, names))
    return found


def _kernels(events: Iterable[Event]) -> dict[str, _Told]:
    kernels: dict[str, _Told] = {}
    for event in events:
        if isinstance(event, KernelStarted):
            kernels[event.kernel] = _Told(started=event.at)
        elif isinstance(event, Measured):
            kernels.setdefault(event.kernel, _Told()).take(event)
        elif isinstance(event, KernelFinished):
            kernels.setdefault(event.kernel, _Told()).ended = event
    return kernels


def _search(
    run: StoredRun, kernel: str, told: _Told, checked: ControlsChecked, names: Mapping[str, str]
) -> ControlsSearch:
    ended = told.ended
    aside = zip(checked.set_aside, checked.set_aside_kernels, checked.set_aside_causes, strict=False)
    return ControlsSearch(
        run=run.id,
        mode=checked.mode,
        ended=ended.reason if ended else "",
        seconds=ended.at - told.started if ended and told.started is not None else None,
        candidates=told.candidates,
        cached=told.cached,
        tried=told.tried,
        failed=told.failed,
        best_without_us=told.best_us(False),
        best_with_us=told.best_us(True),
        used=file_name(_file_in(ended.best_schedule), names) if ended and ended.best_schedule else "",
        used_us=ended.best_us if ended else None,
        set_aside=tuple((file_name(file, names), cause) for file, of, cause in aside if of == kernel),
    )


def joint_against_after(searches: Sequence[ControlsSearch]) -> str:
    """Which of the two ways found the faster one, and what each cost; "" unless both ended with a time."""
    joint, after = (_latest(searches, mode) for mode in (JOINT, AFTER))
    if joint is None or after is None or not joint.used_us or not after.used_us:
        return ""
    return (
        f"joint against after: {_outcome(joint)} against {_outcome(after)}, {joint.used_us / after.used_us:.3f}x; "
        "two runs' times, which were not taken in turns"
    )


def _latest(searches: Sequence[ControlsSearch], mode: str) -> ControlsSearch | None:
    return next((one for one in reversed(searches) if one.mode == mode and one.used_us), None)


def _outcome(one: ControlsSearch) -> str:
    seconds = "" if one.seconds is None else f" in {one.seconds:.0f} s"
    return f"{one.used_us:.2f} us with {one.used} after {one.candidates} candidates{seconds}"


def _file_in(schedule: str) -> str:
    """The sha256 in a schedule's text; "" for none."""
    return next((word[len(KNOB_TEXT) :] for word in schedule.split() if word.startswith(KNOB_TEXT)), "")


def file_name(sha256: str, names: Mapping[str, str]) -> str:
    """What people call a controls file, or the absence of one ("")."""
    return names.get(sha256) or sha256[:12] if sha256 else NO_FILE
