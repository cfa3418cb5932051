"""Which regime's settings a kernel's search ranks by: the ranking one's, unless those misled in this database.

Where they misled, candidates are timed as a deployment runs them, which takes some ten times as long a candidate. The
rows are ranking rows all the same: what they are for doesn't change, and they share the table that a search reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace

from engine.ir.kernel import Kernel
from engine.measure import Device, misleading, ranking_kind
from engine.store import Store
from engine.vocabulary import Measurement, Regime, Schedule


def misranked_kinds(store: Store, context_key: str) -> frozenset[str]:
    """The kinds of kernels whose pairs of times, as this database has them, rank badly."""
    return misleading(pairs_of_kinds(store, context_key))


def pairs_of_kinds(store: Store, context_key: str) -> Mapping[str, Sequence[Sequence[tuple[float, float]]]]:
    """The pairs of ranking and deploy times (us) of each kernel, by the kernel's kind."""
    known = {kernel.key: kernel for kernel in store.kernels()}
    found: dict[str, list[Sequence[tuple[float, float]]]] = {}
    for key, pairs in store.regime_pairs(context_key).items():
        if key in known:
            found.setdefault(ranking_kind(known[key]), []).append(pairs)
    return found


def submit_ranking(
    device: Device, kernel: Kernel, schedule: Schedule, misranked: frozenset[str]
) -> Future[Measurement]:
    """Start the measurement that the kernel's search ranks by; see `Device.submit`."""
    if ranking_kind(kernel) not in misranked:
        return device.submit(kernel, schedule, Regime.RANKING)
    inner = device.submit(kernel, schedule, Regime.DEPLOY)
    outer: Future[Measurement] = Future()
    inner.add_done_callback(lambda answer: _pass_on(answer, outer))
    outer.add_done_callback(lambda answer: inner.cancel() if answer.cancelled() else None)
    return outer


def _pass_on(answer: Future[Measurement], outer: Future[Measurement]) -> None:
    if answer.cancelled():
        outer.cancel()
        return
    with suppress(InvalidStateError):
        if (error := answer.exception()) is not None:
            outer.set_exception(error)
        else:
            outer.set_result(replace(answer.result(), regime=Regime.RANKING))
