"""What a database holds for the prior: every timed candidate of every kernel, in every context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.ir.kernel import Kernel
from engine.prior import COLUMNS, Reservoir, group_name, training_rows
from engine.store import BadRow, Store
from engine.vocabulary import Schedule, Target


def database_rows(store: Store, reservoir: Reservoir | None = None) -> Reservoir:
    """`reservoir` (an empty one if none is given) with the database's rows in place of those of the same kernels.

    Kernels of other tools are not among them: their knobs are none of ours. Raises StoreError.
    """
    reservoir = Reservoir(COLUMNS) if reservoir is None else reservoir
    for group, kernel, timed, target in timed_kernels(store):
        reservoir.replace(*training_rows(kernel, timed, target), group)
    return reservoir


def timed_kernels(store: Store) -> Iterator[tuple[str, Kernel, Mapping[Schedule, float], Target]]:
    """Group, kernel, us of each of its candidates and the context's target, without the kernels of other tools."""
    for kernel in store.kernels():
        if kernel.foreign is not None:
            continue
        for context, _, _ in store.kernel_contexts(kernel.key):
            timed = store.timed(kernel.key, context)
            if not timed:
                continue
            try:
                target = store.target(context)
            except BadRow as error:
                store.leave_out(error)
                continue
            yield group_name(kernel.key, context), kernel, timed, target
