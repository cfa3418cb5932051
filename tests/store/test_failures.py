"""Clusters of failures say what only they share, and don't claim more than the rows show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.store import FailureCluster, Store
from engine.vocabulary import FailureKind, Regime, Schedule

SHARED_MEMORY = "out of resource: shared memory, Required: {}, Hardware limit: 232448"


def record(store: Store, run: str, sample, rows) -> None:
    for trial, measurement in enumerate(rows, start=1):
        schedule = Schedule.of({**measurement.schedule.as_dict(), "TRIAL": trial})
        store.record_measurement(replace(measurement, schedule=schedule), run=run, trial=trial)


def shared(cluster: FailureCluster) -> dict[str, object]:
    return {knob.name: knob.value for knob in cluster.shared}


def test_causes_that_differ_in_numbers_only_are_one_cluster(store: Store, run: str, sample) -> None:
    record(
        store,
        run,
        sample,
        [sample.failed(SHARED_MEMORY.format(262144 + n), BLOCK_M=256, NUM_WARPS=2**n) for n in range(4)]
        + [sample.failed("hung", FailureKind.HANG), sample.ok(), sample.ok(BLOCK_M=128)],
    )
    first, second = store.failures()
    assert (first.cause, first.count) == (SHARED_MEMORY.format("<n>").replace("232448", "<n>"), 4)
    assert first.kinds == ("out of shared memory",)
    assert first.kernels == ("matmul",)
    assert first.example == SHARED_MEMORY.format(262144)
    assert [row.schedule["NUM_WARPS"] for row in first.rows] == [1, 2, 4, 8]
    assert (second.cause, second.count, second.example) == ("hung", 1, "hung")


def test_only_what_sets_the_cluster_apart_is_named(store: Store, run: str, sample) -> None:
    """GROUP_M=1 is everywhere; NUM_WARPS=4 is in some of what worked; BLOCK_M=256 in nothing that worked."""
    record(
        store,
        run,
        sample,
        [sample.failed(BLOCK_M=256, GROUP_M=1, BLOCK_N=n) for n in (16, 32)]
        + [sample.ok(BLOCK_M=64, GROUP_M=1, NUM_WARPS=w, BLOCK_N=64) for w in (4, 8, 8, 8)],
    )
    (cluster,) = store.failures()
    assert shared(cluster) == {"BLOCK_M": 256, "NUM_WARPS": 4}
    assert [(knob.name, knob.elsewhere) for knob in cluster.shared] == [("BLOCK_M", 0.0), ("NUM_WARPS", 0.25)]
    assert cluster.lift == 3.0
    assert cluster.note == ""


def test_true_and_one_are_two_values(store: Store, run: str, sample) -> None:
    record(store, run, sample, [sample.failed(PERSISTENT=True)] * 2 + [sample.ok(PERSISTENT=1)])
    assert shared(store.failures()[0]) == {"PERSISTENT": True}


def test_a_single_failure_claims_nothing(store: Store, run: str, sample) -> None:
    record(store, run, sample, [sample.failed(), sample.ok(BLOCK_M=16)])
    (cluster,) = store.failures()
    assert (cluster.shared, cluster.lift) == ((), 1.0)
    assert "single failure" in cluster.note


def test_when_everything_fails_the_knobs_are_not_blamed(store: Store, run: str, sample) -> None:
    record(store, run, sample, [sample.failed() for _ in range(5)])
    (cluster,) = store.failures()
    assert cluster.shared == ()
    assert "every candidate" in cluster.note


def test_where_nothing_worked_other_failures_are_the_comparison(store: Store, run: str, sample) -> None:
    record(
        store,
        run,
        sample,
        [sample.failed("hung", FailureKind.HANG, BLOCK_M=256, NUM_WARPS=8) for _ in range(3)]
        + [sample.failed("crashed", FailureKind.CRASH, BLOCK_M=32, NUM_WARPS=8) for _ in range(2)],
    )
    hung, crashed = store.failures()
    assert shared(hung) == {"BLOCK_M": 256}
    assert shared(crashed) == {"BLOCK_M": 32}


def test_nothing_in_common_is_said(store: Store, run: str, sample) -> None:
    record(store, run, sample, [sample.failed(BLOCK_M=b, NUM_WARPS=w) for b, w in ((16, 1), (32, 2))] + [sample.ok()])
    (cluster,) = store.failures()
    assert cluster.shared == ()
    assert "no knob value" in cluster.note


def test_kernels_are_compared_with_their_own_successes(store: Store, run: str, sample) -> None:
    rows = [sample.failed(kernel=sample.relu, BLOCK_M=0, BLOCK=b) for b in (4096, 4096)]
    rows += [sample.ok(kernel=sample.relu, BLOCK_M=0, BLOCK=128), sample.ok(BLOCK_M=64)]
    record(store, run, sample, rows)
    (cluster,) = store.failures()
    assert shared(cluster) == {"BLOCK": 4096}
    assert cluster.kernels == ("relu",)
    assert store.failures("relu") == (cluster,)
    assert store.failures("matmul") == ()


def test_one_cause_may_hit_several_kernels_and_both_regimes(store: Store, run: str, sample) -> None:
    rows = [
        sample.failed("crashed", FailureKind.CRASH, regime, kernel=kernel, BLOCK_M=256)
        for regime in Regime
        for kernel in (sample.matmul, sample.relu)
    ]
    record(store, run, sample, [*rows, sample.ok(BLOCK_M=16)])
    (cluster,) = store.failures()
    assert (cluster.count, cluster.kernels) == (4, ("matmul", "relu"))
    assert sorted(row.regime for row in cluster.rows) == ["deploy", "deploy", "ranking", "ranking"]
    assert shared(cluster) == {"BLOCK_M": 256}


def test_no_failures(store: Store, run: str, sample) -> None:
    assert store.failures() == ()
    store.record_measurement(sample.ok(), run=run)
    assert store.failures() == ()


@pytest.mark.parametrize("example", ["x" * 5000, "a\nb", ""])
def test_the_example_is_the_full_cause(store: Store, run: str, sample, example: str) -> None:
    store.record_measurement(sample.failed(example), run=run)
    assert store.failures()[0].example == example


def test_kernels_that_share_nothing_with_each_other_are_clusters_of_their_own(store: Store, run: str, sample) -> None:
    two = [sample.failed(NUM_WARPS=2, BLOCK_M=b) for b in (16, 32, 128)]
    four = [sample.failed(kernel=sample.relu, NUM_WARPS=4, BLOCK_M=256, STAGES=s) for s in (1, 2, 3, 4)]
    good = [sample.ok(NUM_WARPS=4, BLOCK_M=b) for b in (16, 32, 128, 256)]
    good += [sample.ok(kernel=sample.relu, NUM_WARPS=2, BLOCK_M=b, STAGES=s) for b in (16, 32) for s in (1, 2, 3, 4)]
    record(store, run, sample, [*two, *four, *good])
    first, second = store.failures()
    assert first.cause == second.cause
    assert (first.count, first.kernels, shared(first)) == (4, ("relu",), {"NUM_WARPS": 4, "BLOCK_M": 256})
    assert (second.count, second.kernels, shared(second)) == (3, ("matmul",), {"NUM_WARPS": 2})
    assert store.failures("matmul") == (second,)


def test_kernels_that_share_nothing_even_alone_stay_together(store: Store, run: str, sample) -> None:
    few = [sample.failed(kernel=sample.relu, BLOCK_M=b, NUM_WARPS=b // 8) for b in (16, 32)]
    rows = [*few, *(sample.failed(BLOCK_M=b, NUM_WARPS=w) for b, w in ((16, 1), (32, 2), (64, 4)))]
    record(store, run, sample, [*rows, sample.ok(), sample.ok(kernel=sample.relu)])
    (cluster,) = store.failures()
    assert (cluster.count, set(cluster.kernels), cluster.shared) == (5, {"matmul", "relu"}, ())


def test_what_one_family_shares_is_a_cluster_beside_the_rest(store: Store, run: str, sample) -> None:
    rows = [sample.failed(BLOCK_M=b, NUM_WARPS=8) for b in (16, 32, 64)]
    rows += [sample.failed(kernel=sample.relu, BLOCK_M=b, NUM_WARPS=w) for b, w in ((16, 1), (32, 2), (64, 4))]
    good = [sample.ok(BLOCK_M=b, NUM_WARPS=4) for b in (16, 32, 64, 128)]
    record(store, run, sample, [*rows, *good, sample.ok(kernel=sample.relu)])
    found = store.failures()
    assert [(cluster.kernels, shared(cluster)) for cluster in found] == [
        (("matmul",), {"NUM_WARPS": 8}),
        (("relu",), {}),
    ]
