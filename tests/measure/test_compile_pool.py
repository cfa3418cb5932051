"""The real compile process, and the limit that adapts to what compiles take."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.measure.compile_pool import CompileLimits, CompilePool
from engine.measure.process import Nursery, child_environment, entry_command
from engine.vocabulary import FailureKind, Target
from tests.runtime.sources import ADD, add_source, matmul_source


@pytest.fixture(scope="module")
def pool() -> Iterator[tuple[CompilePool, Nursery]]:
    nursery = Nursery()
    pool = CompilePool(nursery, entry_command("engine.measure.compile_worker"), 1, CompileLimits())
    yield pool, nursery
    pool.close()
    nursery.close()


def test_a_binary_is_there_for_the_benchmark_process(pool: tuple[CompilePool, Nursery]) -> None:
    compiled, nursery = pool
    reply = compiled.submit(matmul_source(), Target(), 3).result(timeout=60)
    assert reply.failure is None
    assert reply.build.registers is not None
    program = (
        "import pathlib, sys\n"
        "from engine.codegen import KernelSource\n"
        "from engine.runtime import compile_source\n"
        "from engine.vocabulary import Target\n"
        "source = KernelSource.from_json(sys.stdin.read())\n"
        "print(compile_source(source, Target(), pathlib.Path(sys.argv[1])).build.registers)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, str(nursery.folder / "sources")],
        input=matmul_source().to_json(),
        capture_output=True,
        text=True,
        check=True,
        env=child_environment(nursery.folder),
        cwd=Path(__file__).parents[2],
    )
    assert said.stdout.split() == ["None"], "it came from the cache: no ptxas ran"


def test_equal_sources_share_one_future(pool: tuple[CompilePool, Nursery]) -> None:
    first = pool[0].submit(add_source(), Target(), 3)
    assert pool[0].submit(add_source(), Target(), 3) is first
    assert pool[0].submit(add_source(), Target(), 1) is not first


def test_failures_keep_the_process(pool: tuple[CompilePool, Nursery]) -> None:
    too_large = pool[0].submit(matmul_source(128, 128, 128, 5), Target(), 3).result(timeout=60)
    assert too_large.failure is not None
    assert too_large.failure.kind is FailureKind.SHARED_MEMORY
    assert too_large.build.shared_bytes is not None
    broken = pool[0].submit(add_source(ADD.replace("tl.load(y", "tl.load(z")), Target(), 3).result(timeout=60)
    assert broken.failure is not None
    assert broken.failure.kind is FailureKind.COMPILE_ERROR
    assert len(pool[0]._children) == 1


def test_an_abort_of_the_compiler_is_one_failure(pool: tuple[CompilePool, Nursery]) -> None:
    abort = pool[0].submit(add_source("import os\nos.abort()\n"), Target(), 3).result(timeout=60)
    assert abort.failure is not None
    assert abort.failure.kind is FailureKind.CRASH
    assert "SIGABRT" in abort.failure.cause
    assert pool[0].submit(add_source(ADD + "# after\n"), Target(), 3).result(timeout=60).failure is None


@given(st.lists(st.floats(0.001, 100), max_size=60))
def test_the_limit_stays_between_its_bounds(seen: list[float]) -> None:
    limits = CompileLimits()
    assert limits.low_s <= limits.limit_s(seen) <= limits.high_s


def test_the_limit_follows_what_is_seen() -> None:
    limits = CompileLimits()
    assert limits.limit_s([]) == 60
    assert limits.limit_s([0.5] * 20) == 10
    assert limits.limit_s([5.0] * 20) == 25
    assert limits.limit_s([0.5] * 19 + [300.0]) == 10, "one outlier does not raise it"


def test_a_users_settings_do_not_reach_the_compilers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("PTXAS_OPTIONS", "--opt-level 0")
    environment = child_environment(tmp_path)
    assert "TRITON_INTERPRET" not in environment
    assert "PTXAS_OPTIONS" not in environment
    assert environment["TRITON_CACHE_DIR"].startswith(str(tmp_path))
    assert environment["PATH"] == os.environ["PATH"]
