"""How each pin stands today: may it be built, and how it is beside its kernel's best, told apart by the one verdict on
two recorded times."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from engine.codegen import illegal_because
from engine.measure import judged_apart
from engine.store import PinStanding, Standing, Store, StoreError
from engine.vocabulary import Timing, Verdict


def pin_standings(store: Store) -> tuple[PinStanding, ...]:
    """Every pin in force with how it stands, oldest first. Raises StoreError."""
    return tuple(_legal_or_not(one, store) for one in store.pin_standings(_faster))


def _legal_or_not(one: PinStanding, store: Store) -> PinStanding:
    """The standing, as ILLEGAL where the schedule can't be built on the chip that it is for."""
    with suppress(StoreError):  # a kernel that can't be read is said elsewhere
        kernel = store.kernel(one.stored.pin.kernel_key)
        if kernel.foreign is None:
            illegal = illegal_because(kernel, one.stored.pin.schedule, store.target(one.stored.context_key))
            return replace(one, standing=Standing.ILLEGAL, illegal=illegal) if illegal else one
    return one


def _faster(mine: Timing, other: Timing, noise: float | None) -> Verdict:
    try:
        return judged_apart(mine, other, noise).verdict
    except ValueError:  # a recording may hold a time of 0, with which nothing compares
        return Verdict.WITHIN_NOISE
