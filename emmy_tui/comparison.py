"""Two runs kernel by kernel: which times compare, by how much they differ, and whether that is more than noise.

Times compare within one regime: the deploy regime's where both runs have one, else the ranking regime's. What two
times say, `emmy_tui.verdicts` tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from pathlib import Path

from emmy_tui.run_state import Listener, is_lost, state_word
from engine.store import KernelResult, Store, StoredRun, StoreError
from engine.store.run_results import BestTime
from engine.vocabulary import Regime

PARTNERS = 16
"""Runs that are looked at for one that is like another, or has one that is like it."""


class Verdict(StrEnum):
    """What the two times say."""

    A_FASTER = "A faster"
    B_FASTER = "B faster"
    NOISE = "within noise"
    SAME = "same time"
    SHARED = "same measurement"
    ONLY_A = "only in A"
    ONLY_B = "only in B"
    NO_TIME = "no common time"


@dataclass(frozen=True, slots=True)
class Side:
    """One run, the database that it is in, and what proved ptxas controls in it ("" for a run without)."""

    path: Path
    run: StoredRun
    kernels: tuple[KernelResult, ...]
    controls: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """One kernel. `ratio` is A / B, `low` to `high` its interval; None without two times, or without intervals."""

    kernel: str
    label: str
    shape: str
    regime: Regime | None
    a: BestTime | None
    b: BestTime | None
    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides and their pairs: common kernels in A's order, then A's own, then B's own."""

    a: Side
    b: Side
    pairs: tuple[Pair, ...]

    @property
    def geomean(self) -> float | None:
        """The geometric mean of the ratios."""
        ratios = [pair.ratio for pair in self.pairs if pair.ratio]
        return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None

    @property
    def one_context(self) -> bool:
        """Whether both were measured on one GPU with one toolchain."""
        return self.a.run.context_key == self.b.run.context_key


def compare(a: Side, b: Side) -> Comparison:
    of_b = {kernel.kernel: kernel for kernel in b.kernels}
    own = {kernel.kernel for kernel in a.kernels}
    pairs = [pair_of(kernel, of_b.get(kernel.kernel)) for kernel in a.kernels]
    pairs += [pair_of(None, kernel) for kernel in b.kernels if kernel.kernel not in own]
    return Comparison(a, b, tuple(sorted(pairs, key=lambda pair: pair.verdict in (Verdict.ONLY_A, Verdict.ONLY_B))))


def pair_of(a: KernelResult | None, b: KernelResult | None) -> Pair:
    """One kernel that at least one side has; two times are still to be judged, and count as noise until then."""
    named = a or b
    assert named is not None
    regime, mine, other = _common(a, b)
    ratio = mine.us / other.us if mine and other and other.us > 0 else None
    verdict = Verdict.NOISE if ratio is not None else Verdict.NO_TIME
    if a is None or b is None:
        verdict = Verdict.ONLY_B if a is None else Verdict.ONLY_A
    return Pair(named.kernel, named.label, named.shape, regime, mine, other, ratio, None, None, verdict)


def _common(a: KernelResult | None, b: KernelResult | None) -> tuple[Regime | None, BestTime | None, BestTime | None]:
    """The regime that both have a time in, deploy first; a kernel of one side shows the time that counts."""
    both = [side for side in (a, b) if side is not None]
    if all(side.deploy is not None for side in both):
        return Regime.DEPLOY, a.deploy if a else None, b.deploy if b else None
    if any(side.ranking is not None for side in both):
        return Regime.RANKING, a.ranking if a else None, b.ranking if b else None
    return None, None, None


@dataclass(frozen=True, slots=True)
class Choice:
    """Which runs to compare: "" stands for the newest as A (within one database, the newest that has a kernel in common
    with its B), and as B for the newest other one of A's target, or the one with most of A's kernels.

    `other` is a second database, in which the run `b` is; None: both are in the one. Where `swapped`, that run is shown
    as A, and `a` of the first database as B.
    """

    a: str = ""
    b: str = ""
    other: Path | None = None
    swapped: bool = False


def read_comparison(choice: Choice) -> Callable[[Store], Comparison]:
    """The question that a desk answers. Raises StoreError where there are not two runs."""

    def question(store: Store) -> Comparison:
        from emmy_tui.verdicts import judged_pairs

        runs = measuring_runs(store)
        if not runs:
            raise StoreError("No run has measured anything yet: `emmy tune` records one, and two of them compare here.")
        if choice.other is None:
            return judged_pairs(compare(*_sides(store, runs, choice)), store, store)
        own = _side(store, next((run for run in runs if run.id == choice.a), runs[0]))
        with Store.open(choice.other, read_only=True) as second:
            theirs = measuring_runs(second)
            if not theirs:
                raise StoreError(f"{choice.other} holds no run that measured anything.")
            partner = _partner(partial(_side, second), theirs, own, choice.b)
            if choice.swapped:
                return judged_pairs(compare(partner, own), second, store)
            return judged_pairs(compare(own, partner), store, second)

    return question


def measuring_runs(store: Store) -> list[StoredRun]:
    """The newest first."""
    return list(reversed(store.runs()))


def listed_runs(store: Store, now: float, followed: str = "", *, lost: bool = False) -> list[tuple[StoredRun, str]]:
    """The measuring runs with their states in words. Whether the run that the screens follow is `lost` they know from
    listening to it; of another one that has no end only this look tells."""
    found = []
    for place, run in enumerate(measuring_runs(store)):
        if place:
            gone = is_lost(run, newest=False, silent=True)
        else:
            gone = lost if run.id == followed else Listener(run).lost(store, now)
        found.append((run, state_word(run, gone)))
    return found


def _sides(store: Store, runs: Sequence[StoredRun], choice: Choice) -> tuple[Side, Side]:
    """Both in one database. Programs with nothing in common say nothing, so that A, where no run is asked for, is the
    newest of the last ones that has a kernel in common with its B."""
    side = cache(partial(_side, store))
    own = side(next((run for run in runs if run.id == choice.a), runs[0]))
    first = own, _partner(side, runs, own, choice.b)
    if choice.a or choice.b or _common_kernels(*first):
        return first
    others = ((side(run), _partner(side, runs, side(run), "")) for run in runs[1:PARTNERS])
    return next((pair for pair in others if _common_kernels(*pair)), first)


def _common_kernels(a: Side, b: Side) -> int:
    return len({result.kernel for result in a.kernels} & {result.kernel for result in b.kernels})


def _partner(side: Callable[[StoredRun], Side], runs: Sequence[StoredRun], a: Side, wanted: str) -> Side:
    """The run that is asked for, else the newest other one of A's target, else of the newest others the one that tuned
    most of A's kernels. Raises StoreError where there is no other."""
    others = [run for run in runs if run.id != a.run.id]
    named = [run for run in runs if run.id == wanted] or [run for run in others if run.target == a.run.target]
    if named:
        return side(named[0])
    if not others:
        raise StoreError("There is one run only: tune again, or take the second one from another database.")
    return max(map(side, others[:PARTNERS]), key=partial(_common_kernels, a))


def _side(store: Store, run: StoredRun) -> Side:
    return Side(store.path, run, store.run_results(run.id), _controls(store, run))


def _controls(store: Store, run: StoredRun) -> str:
    """The canary, and a kernel timed against itself beside it."""
    checked = store.controls_checked(run.id)
    if checked is None:
        return ""
    if not checked.on:
        return f"controls off: {checked.reason}"
    canary = f"without optimization {checked.slowdown:.2f}x, against itself {checked.control_ratio:.3f}x"
    return f"controls {checked.mode}: {checked.offered} files, {canary}"
