"""The command that measures one schedule of a recorded kernel again: `emmy run` on a program that launches it.

It times the schedule in turns beside what deploys, `emmy run --ab`, so that the two times compare. A search's command
would do all of the search, and find what the database holds already.
"""

from __future__ import annotations

import shlex

from engine.deploy.pinning import in_place_of
from engine.store import Store
from engine.vocabulary import Regime, Schedule, is_kernel_target


def measuring_command(store: Store, kernel_key: str, context_key: str, schedule: Schedule) -> str:
    """The command, on the database as it was opened; "" where no recorded program would launch the kernel."""
    targets = store.launching_targets(kernel_key, context_key)
    program = next((target for target in targets if not is_kernel_target(target)), "")
    if not program:
        return ""
    words = ["emmy", "run", "--program", program, "--kernel", kernel_key]
    if schedule == _deployed(store, kernel_key, context_key):
        words.append("--bench")
    else:
        words += ["--ab", str(schedule)]
    return shlex.join([*words, "--db", str(store.path)])


def _deployed(store: Store, kernel_key: str, context_key: str) -> Schedule | None:
    """What the kernel would be launched with, of which another one is a change."""
    stored = in_place_of(store, kernel_key, context_key)
    if stored is not None:
        return stored.pin.schedule
    best = store.best(kernel_key, context_key, Regime.DEPLOY) or store.best(kernel_key, context_key, Regime.RANKING)
    return best.schedule if best is not None else None
