"""Which kind an error text means, on texts that CUDA, Triton, ptxas and torch really produce."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError

from engine import disk
from engine.runtime import failure_of, no_space, one_line
from engine.runtime.failures import CAUSE_LIMIT
from engine.vocabulary import FailureKind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("CUDA error: an illegal memory access was encountered\nmore"), FailureKind.ILLEGAL_ACCESS),
        (RuntimeError("Triton Error [CUDA]: misaligned address"), FailureKind.ILLEGAL_ACCESS),
        (RuntimeError("CUDA error: unspecified launch failure"), FailureKind.ILLEGAL_ACCESS),
        (RuntimeError("Triton Error [CUDA]: too many resources requested for launch"), FailureKind.REGISTERS),
        (RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB"), FailureKind.OUT_OF_MEMORY),
        (RuntimeError("Triton Error [CUDA]: out of memory"), FailureKind.OUT_OF_MEMORY),
        (OutOfResources(262144, 232448, "shared memory"), FailureKind.SHARED_MEMORY),
        (OutOfResources(2048, 1024, "threads"), FailureKind.THREADS),
        (
            PTXASError(
                "Internal Triton PTX codegen error\n`ptxas` stderr:\n"
                "ptxas error   : (C7600) Register allocation failed with register count of '255'\nRepro command: x"
            ),
            FailureKind.REGISTERS,
        ),
        (RuntimeError("PassManager::run failed"), FailureKind.COMPILE_ERROR),
    ],
)
def test_kinds(error: Exception, kind: FailureKind) -> None:
    failure = failure_of(error)
    assert failure.kind is kind
    assert "\n" not in failure.cause


def test_an_unknown_error_has_the_kind_its_place_gives_it() -> None:
    assert failure_of(ValueError("odd"), otherwise=FailureKind.CRASH).kind is FailureKind.CRASH
    assert failure_of(ValueError()).cause == "ValueError"


def test_what_differs_between_equal_failures_is_left_out() -> None:
    first = one_line("at 0x7f12ab34 in /tmp/emmy-x1/sources/emmy_0123456789abcdef.py:  pid 12")
    second = one_line("at 0x7f99ff00 in /tmp/emmy-y2/sources/emmy_fedcba9876543210.py: pid 4711")
    assert first == second


@given(st.text(max_size=2000))
def test_a_cause_is_one_bounded_line(text: str) -> None:
    line = one_line(text)
    assert len(line) <= CAUSE_LIMIT
    assert "\n" not in line


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "no room"),
        OSError(errno.EDQUOT, "no room"),
        RuntimeError("ptxas fatal: write failed: No space left on device"),
    ],
)
def test_a_full_disk_is_told_from_a_candidates_fault(error: Exception, tmp_path: Path) -> None:
    assert no_space(error, tmp_path)


def test_a_compiler_that_fails_on_a_full_disk_may_not_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = RuntimeError("gcc returned exit status 1")
    assert not no_space(error, tmp_path)
    assert not no_space(error, tmp_path / "gone")
    monkeypatch.setattr(disk, "LEAST_BYTES", 1 << 62)
    assert no_space(error, tmp_path)
    assert disk.is_scarce(tmp_path)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        OutOfResources(262144, 232448, "shared memory"),
        PTXASError("ptxas error   : (C7600) Register allocation failed with register count of '255'"),
        CompilationError("x = ", None, "no such name"),
    ],
)
def test_what_says_its_own_reason_is_no_full_disk(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "LEAST_BYTES", 1 << 62)
    assert not no_space(error, tmp_path)
