"""What a database holds for the prior: times of candidates of every kernel, in every context."""

from __future__ import annotations

from collections.abc import Iterator

from engine.ir.kernel import Kernel
from engine.prior import COLUMNS, FASTEST, OTHERS, Reservoir, group_name, training_rows
from engine.store import BadRow, Store
from engine.vocabulary import Target


def database_rows(store: Store, reservoir: Reservoir | None = None) -> Reservoir:
    """`reservoir` (an empty one if none is given) with the database's rows in place of those of the same kernels.

    Kernels of other tools are not among them: their knobs are none of ours. Raises StoreError.
    """
    reservoir = Reservoir(COLUMNS) if reservoir is None else reservoir
    for kernel, context, target in measured_kernels(store):
        timed = store.timed_sample(kernel.key, context, FASTEST, OTHERS)
        if timed:
            reservoir.replace(*training_rows(kernel, timed, target), group_name(kernel.key, context))
    return reservoir


def measured_kernels(store: Store) -> Iterator[tuple[Kernel, str, Target]]:
    """Every kernel with each context that it was measured in and the context's target, without those of other tools."""
    for kernel in store.kernels():
        if kernel.foreign is not None:
            continue
        for context, _, _ in store.kernel_contexts(kernel.key):
            try:
                target = store.target(context)
            except BadRow as error:
                store.leave_out(error)
                continue
            yield kernel, context, target
