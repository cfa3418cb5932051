"""Variants come best first, per kernel and context, found by whatever a person remembers of a kernel."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from engine.store import Store
from engine.vocabulary import FailureKind, Regime


def test_rows_come_best_first_and_failed_ones_last(store: Store, run: str, sample) -> None:
    for measurement in (
        sample.ok(12.0, NUM_WARPS=1),
        sample.failed("hung", FailureKind.HANG, NUM_WARPS=2),
        sample.ok(10.0, NUM_WARPS=4),
        sample.ok(9.5, Regime.DEPLOY, NUM_WARPS=4),
        sample.ok(11.0, NUM_WARPS=8),
    ):
        store.record_measurement(measurement, run=run)
    (found,) = store.variants()
    assert (found.label, found.family, found.shape) == ("matmul", "contraction", sample.matmul.shape_text)
    assert (found.kernel, found.context, found.gpu) == (sample.matmul.key, sample.context.key, "NVIDIA H200")
    assert (found.ok, found.failed) == (3, 1)
    assert [row.us for row in found.rows] == [10.0, 11.0, 12.0, None]
    assert [row.rank for row in found.rows] == [1, 2, 3, 4]
    assert [row.schedule["NUM_WARPS"] for row in found.rows] == [4, 8, 1, 2]
    assert [row.deploy_us for row in found.rows] == [9.5, None, None, None]
    best, last = found.rows[0], found.rows[-1]
    assert (best.low_us, best.high_us, best.registers, best.spills, best.shared_bytes) == (9.5, 10.5, 96, 0, 49152)
    assert (best.error, best.status, best.failure) == (1e-3, "ok", "")
    assert (last.status, last.failure) == ("failed", "hang")


@pytest.mark.parametrize(("top", "shown"), [(0, 0), (1, 1), (3, 3), (20, 4)])
def test_top_limits_the_rows_and_not_the_counts(store: Store, run: str, sample, top: int, shown: int) -> None:
    for warps in (1, 2, 4):
        store.record_measurement(sample.ok(10.0 + warps, NUM_WARPS=warps), run=run)
    store.record_measurement(sample.failed(NUM_WARPS=8), run=run)
    (found,) = store.variants(top=top)
    assert (len(found.rows), found.ok, found.failed) == (shown, 3, 1)


def test_contexts_are_never_mixed(store: Store, run: str, sample) -> None:
    other = replace(sample.context, gpu="NVIDIA A100")
    store.record_context(other)
    store.record_measurement(sample.ok(10.0), run=run)
    store.record_measurement(replace(sample.ok(30.0), context_key=other.key), run=run)
    assert {(found.gpu, found.rows[0].us) for found in store.variants()} == {
        ("NVIDIA H200", 10.0),
        ("NVIDIA A100", 30.0),
    }


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("", ["matmul", "relu"]),
        ("MATMUL", ["matmul"]),
        ("mat*", ["matmul"]),
        ("*l*u", ["relu"]),
        ("point", ["relu"]),
        ("512x512", ["matmul", "relu"]),
        ("rel?", []),
        ("[a-z]", []),
        ("%", []),
        ("nothing", []),
        ("matmul 512x512", ["matmul"]),
        ("Matmul  512x512x512 float32", ["matmul"]),
        ("matmul 512*32", ["matmul"]),
        ("matmul float32", []),
    ],
)
def test_a_kernel_is_found_by_label_family_or_shape(store: Store, run: str, sample, text: str, labels) -> None:
    for kernel in (sample.matmul, sample.relu):
        store.record_measurement(sample.ok(kernel=kernel), run=run)
    assert [found.label for found in store.variants(text)] == labels


def test_a_kernel_is_found_by_key(store: Store, run: str, sample) -> None:
    store.record_measurement(sample.ok(), run=run)
    assert [found.label for found in store.variants(sample.matmul.key[:9])] == ["matmul"]


def fill(store: Store, run: str, sample, rows: int) -> None:
    """Many rows in one go, past the interface: only how long the questions take matters here."""
    store.record_measurement(sample.ok(), run=run)
    store._connection.db.conn.execute(
        """
        INSERT INTO measurement (kernel_key, schedule, context_key, status, median_us, low_us, high_us, samples,
                                 failure_kind, cause, normalized_cause, run, trial, measured_at)
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        SELECT kernel_key, printf('{"BLOCK_K":32,"BLOCK_M":%d,"BLOCK_N":64,"GROUP_M":8,"LOADS":"pointer",'
               || '"NUM_STAGES":3,"NUM_WARPS":%d,"PERSISTENT":false,"TRIAL":%d}', 16 << (i % 5), 1 << (i % 6), i),
               context_key, iif(i % 4, 'ok', 'failed'), iif(i % 4, 10.0 + i % 997, NULL), iif(i % 4, 9.0, NULL),
               iif(i % 4, 12.0, NULL), iif(i % 4, printf('[%s]', replace(hex(zeroblob(150)), '00', '10.125,')), NULL),
               iif(i % 4, NULL, 'hang'), iif(i % 4, NULL, 'hung ' || i), iif(i % 4, NULL, 'hung ' || (i % 7)), run, i, i
        FROM n, (SELECT kernel_key, context_key, run FROM measurement LIMIT 1)
        """,
        (rows,),
    )


@pytest.mark.slow
def test_a_hundred_thousand_rows(
    path: Path, store: Store, run: str, sample, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(store, run, sample, 100_000)
    with Store.open(path, read_only=True) as reader:
        moments = [time.perf_counter()]
        (found,) = reader.variants("matmul")
        moments.append(time.perf_counter())
        clusters = reader.failures("matmul")
        moments.append(time.perf_counter())
    assert (found.ok, found.failed, len(found.rows)) == (75_001, 25_000, 20)
    assert sum(cluster.count for cluster in clusters) == 25_000
    with capsys.disabled():
        print(f"\n100,000 rows: variants {moments[1] - moments[0]:.3f} s, failures {moments[2] - moments[1]:.3f} s")
