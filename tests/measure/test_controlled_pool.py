"""Controls in real compile processes: they share one frozen PTX, and a ptxas that hangs costs one candidate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.codegen import KernelSource
from engine.measure import Controls, ControlsFile, find_assembler
from engine.measure.compile_pool import CompileLimits
from engine.measure.process import entry_command
from engine.measure.workshop import Workshop
from engine.vocabulary import FailureKind, Target
from tests.runtime.sources import matmul_source

from .fake_ptxas import assemblies, fake_ptxas

TEXTS = ("slower", "other", "ignored", "hang")


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    files = tuple(ControlsFile(text, text.encode()) for text in TEXTS)
    controls = Controls(find_assembler(fake_ptxas(tmp_path / "the tools")), files)
    limits = CompileLimits(high_s=40.0, low_s=2.0, seen_before_adapting=1)
    shop = Workshop(entry_command("engine.measure.compile_worker"), 2, limits, controls)
    yield shop
    shop.pool.close()
    shop.nursery.close()


def with_controls(text: str) -> KernelSource:
    return replace(matmul_source(), acf=ControlsFile(text, text.encode()).sha256)


@pytest.mark.slow
def test_one_ptx_for_all(tmp_path: Path, workshop: Workshop) -> None:
    sources = [matmul_source(), *(with_controls(text) for text in TEXTS[:3])]
    replies = [reply.result(100) for reply in [workshop.pool.submit(source, Target(), 3) for source in sources]]
    assert [reply.failure for reply in replies] == [None] * 4
    sizes = [reply.build.code_bytes for reply in replies]
    assert sizes[0] == sizes[3]
    assert sizes[1] != sizes[0]
    assert all(reply.build.registers for reply in replies)
    assert sorted(assemblies(tmp_path / "the tools")) == ["", "ignored", "other", "slower"]
    hung = workshop.pool.submit(with_controls("hang"), Target(), 3).result(100)
    assert hung.failure is not None
    assert hung.failure.kind is FailureKind.COMPILE_TIMEOUT


def test_files_may_come_while_it_runs(tmp_path: Path, workshop: Workshop) -> None:
    never = workshop.pool.submit(with_controls("never brought"), Target(), 3).result(100)
    assert never.failure is not None
    assert "is not here" in never.failure.cause
    late = Controls(find_assembler(fake_ptxas(tmp_path / "the tools")), (ControlsFile("", b"slower, late"),))
    late.lay_out(workshop.nursery.sources)
    assert workshop.pool.submit(with_controls("slower, late"), Target(), 3).result(100).failure is None
    assert assemblies(tmp_path / "the tools")[-1] == "slower, late"
