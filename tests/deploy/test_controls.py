"""A pinned schedule with ptxas controls is checked before anything is built: known bytes, accepted by this ptxas."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from engine.codegen import offered_schedules
from engine.deploy.deployment import kernel_choice
from engine.deploy.evidence import Source
from engine.deploy.pinning import unpinnable_because
from engine.ir import GraphBuilder, TensorSpec
from engine.ir.kernel import Kernel
from engine.prior import ColdModel
from engine.store import AcceptanceRow, Store
from engine.vocabulary import Context, Schedule, Target

DATA = b"made up"
SHA = hashlib.sha256(DATA).hexdigest()
PTXAS = "ab" * 32


@pytest.fixture
def kernel() -> Kernel:
    builder = GraphBuilder()
    side = TensorSpec.contiguous((256, 256), "bfloat16")
    return Kernel("contraction", builder.build(builder.add("matmul", builder.input(side), builder.input(side))))


def pinned(store: Store, kernel: Kernel, ptxas: str) -> tuple[Schedule, str]:
    context = Context("GPU", "9.0", "1", "2", "3", ptxas)
    store.record_context(context, Target())
    store.record_kernel(kernel)
    schedule = Schedule.of({**next(offered_schedules(kernel, Target())).as_dict(), "ACF": SHA})
    store.record_pin(kernel.key, schedule, context.key, author="me")
    return schedule, context.key


def test_a_pin_whose_controls_fit_decides(tmp_path: Path, kernel: Kernel) -> None:
    with Store.open(tmp_path / "t.db") as store:
        store.record_controls([("one", DATA)], [AcceptanceRow(SHA, PTXAS, "13.3.73", 90, True)])
        schedule, context = pinned(store, kernel, f"13.3.73+{PTXAS[:12]}")
        assert unpinnable_because(kernel, schedule, store, context) == ""
        chosen = kernel_choice(kernel, 1, store, context, Target(), ColdModel()).chosen
    assert chosen is not None
    assert (chosen.source, chosen.schedule) == (Source.PIN, schedule)


@pytest.mark.parametrize(
    ("ptxas", "known", "words"),
    [
        ("12.8.93", True, "not by ptxas 12.8.93 for sm_90"),
        (f"13.3.73+{'cd' * 6}", True, "not by ptxas 13.3.73 for sm_90"),
        (f"13.3.73+{PTXAS[:12]}", False, "is not in this database"),
    ],
    ids=["another version", "another binary of one version", "unknown bytes"],
)
def test_a_pin_whose_controls_do_not_fit_decides_nothing(
    tmp_path: Path, kernel: Kernel, ptxas: str, known: bool, words: str
) -> None:
    with Store.open(tmp_path / "t.db") as store:
        if known:
            store.record_controls([("one", DATA)], [AcceptanceRow(SHA, PTXAS, "13.3.73", 90, True)])
        schedule, context = pinned(store, kernel, ptxas)
        assert words in unpinnable_because(kernel, schedule, store, context)
        first = kernel_choice(kernel, 1, store, context, Target(), ColdModel(), every_line=True).lines[0]
        chosen = kernel_choice(kernel, 1, store, context, Target(), ColdModel()).chosen
    assert first.source is Source.PIN
    assert words in first.illegal
    assert chosen is not None
    assert chosen.source is not Source.PIN
