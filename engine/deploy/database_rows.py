"""The training rows that a database holds: every timed candidate of every kernel, in every context."""

from __future__ import annotations

from engine.prior import COLUMNS, Reservoir, group_name, training_rows
from engine.store import Store


def database_rows(store: Store, reservoir: Reservoir | None = None) -> Reservoir:
    """`reservoir` (an empty one if none is given) with the database's rows in place of those of the same kernels.

    Kernels of other tools are left out: their knobs are none of ours. Raises StoreError.
    """
    reservoir = Reservoir(COLUMNS) if reservoir is None else reservoir
    for kernel in store.kernels():
        if kernel.foreign is not None:
            continue
        for context, _, _ in store.kernel_contexts(kernel.key):
            timed = store.timed(kernel.key, context)
            if timed:
                matrix, log_us = training_rows(kernel, timed, store.target(context))
                reservoir.replace(matrix, log_us, group_name(kernel.key, context))
    return reservoir
