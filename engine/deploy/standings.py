"""How each pin stands today: beside its kernel's best, told apart by the one verdict on two recorded times."""

from __future__ import annotations

from engine.measure import judged_apart
from engine.store import PinStanding, Store
from engine.vocabulary import Timing, Verdict


def pin_standings(store: Store) -> tuple[PinStanding, ...]:
    """Every pin in force with how it stands, oldest first. Raises StoreError."""
    return store.pin_standings(_faster)


def _faster(mine: Timing, other: Timing, noise: float | None) -> Verdict:
    try:
        return judged_apart(mine, other, noise).verdict
    except ValueError:  # a recording may hold a time of 0, with which nothing compares
        return Verdict.WITHIN_NOISE
