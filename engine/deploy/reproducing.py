"""The command that measures one schedule of a recorded kernel again: `emmy run` on a program that launches it.

It times the schedule in turns beside what deploys, `emmy run --ab`, so that the two times compare. A search's command
would do all of the search, and find what the database holds already.
"""

from __future__ import annotations

import shlex

from engine.deploy.deployment import DeploymentError, deploys_now
from engine.prior import Prior
from engine.store import Store, StoreError
from engine.vocabulary import Schedule, is_kernel_target


def measuring_command(store: Store, kernel_key: str, context_key: str, schedule: Schedule, prior: Prior) -> str:
    """The command, on the database as it was opened; "" where no recorded program would launch the kernel, and where
    nothing can be built of it. `prior` is what predicts in a deployment."""
    runs = store.launching_runs(kernel_key, context_key)
    program, run = next((one for one in runs.items() if not is_kernel_target(one[0])), ("", ""))
    if not program:
        return ""
    try:
        deployed = deploys_now(store, kernel_key, context_key, prior, run, every_line=False).schedule
    except (DeploymentError, StoreError):
        return ""
    words = ["emmy", "run", "--program", program, "--kernel", kernel_key]
    words += ["--bench"] if schedule == deployed else ["--ab", str(schedule)]
    return shlex.join([*words, "--db", str(store.path)])
