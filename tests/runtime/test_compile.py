"""Real sources become sm_90 binaries here, without a GPU, and what is wrong with a source has a kind."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from engine.codegen import KernelSource
from engine.runtime import BuildError, DiskFull, compile_source
from engine.runtime.compile import load_function, read_ptxas_log, write_source
from engine.vocabulary import FailureKind, Target
from tests.runtime.sources import ADD, add_source, matmul_source


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))


def failure_of(source: KernelSource, folder: Path) -> tuple[FailureKind, str]:
    with pytest.raises(BuildError) as caught:
        compile_source(source, Target(), folder)
    return caught.value.failure.kind, caught.value.failure.cause


def test_a_source_compiles_for_sm_90_with_a_report(tmp_path: Path) -> None:
    compiled = compile_source(matmul_source(), Target(), tmp_path)
    assert compiled.build.registers is not None
    assert 16 <= compiled.build.registers <= 255
    assert compiled.build.spills == 0
    assert compiled.build.shared_bytes is not None
    assert compiled.build.shared_bytes >= 3 * 2 * 64 * 64 * 2
    assert compiled.build.compile_s is not None
    assert compiled.build.compile_s > 0
    assert compiled.kernel.asm["cubin"][:4] == b"\x7fELF"


def test_another_process_finds_the_binary(tmp_path: Path) -> None:
    compile_source(matmul_source(), Target(), tmp_path)
    program = (
        "import pathlib, sys\n"
        "from engine.codegen import KernelSource\n"
        "from engine.runtime import compile_source\n"
        "from engine.vocabulary import Target\n"
        "source = KernelSource.from_json(sys.stdin.read())\n"
        "print(compile_source(source, Target(), pathlib.Path(sys.argv[1])).build.registers, 'torch' in sys.modules)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "elsewhere")]
    said = subprocess.run(command, input=matmul_source().to_json(), capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["None", "False"], "no ptxas ran, and torch was not loaded"


def test_ptxas_level_is_part_of_the_binary(tmp_path: Path) -> None:
    best = compile_source(matmul_source(), Target(), tmp_path)
    none = compile_source(matmul_source(), Target(), tmp_path, ptxas_level=0)
    assert none.build.registers is not None, "not served from the cache"
    assert len(none.kernel.asm["cubin"]) != len(best.kernel.asm["cubin"])


def test_too_much_shared_memory_is_told_with_its_size(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        compile_source(matmul_source(128, 128, 128, stages=5), Target(), tmp_path)
    assert caught.value.failure.kind is FailureKind.SHARED_MEMORY
    assert "232448" in caught.value.failure.cause
    assert caught.value.build.shared_bytes is not None
    assert caught.value.build.shared_bytes > 232_448


def test_wrong_sources_have_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    unknown_name = ADD.replace("tl.load(y", "tl.load(z")
    wrong_shape = ADD.replace("tl.load(y + at)", "tl.load(y + tl.arange(0, 512))")
    wrong_range = ADD.replace("tl.arange(0, 1024)", "tl.arange(0, 1000)")
    for text, words in ((unknown_name, "z"), (wrong_shape, "1024"), (wrong_range, "power of 2"), ("def (", "syntax")):
        kind, cause = failure_of(add_source(text), tmp_path)
        assert kind is FailureKind.COMPILE_ERROR
        assert words in cause
        assert "\n" not in cause
        assert str(tmp_path) not in cause
    assert capfd.readouterr().out == ""


def test_equal_faults_in_two_sources_have_equal_causes(tmp_path: Path) -> None:
    first, second = (add_source(ADD.replace("tl.load(y", "tl.load(z") + f"# {n}\n") for n in range(2))
    assert failure_of(first, tmp_path) == failure_of(second, tmp_path)


def test_too_many_threads(tmp_path: Path) -> None:
    assert failure_of(add_source(warps=64), tmp_path)[0] is FailureKind.THREADS


def test_ptxas_errors_keep_what_ptxas_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BuildError) as caught:
        compile_source(add_source(), Target(), tmp_path, ptxas_options="--no-such-option")
    assert caught.value.failure.kind is FailureKind.COMPILE_ERROR
    assert "no-such-option" in caught.value.failure.cause
    assert capfd.readouterr().out == "", "the PTX that Triton prints stays off the terminal"


def test_a_full_disk_is_no_fault_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises(DiskFull, match=r"no space is left under .*cache, where compiled candidates are kept"):
        compile_source(add_source(), Target(), tmp_path)


def test_the_text_is_kept_once_under_its_content(tmp_path: Path) -> None:
    first, again = write_source(add_source(), tmp_path), write_source(add_source(), tmp_path)
    other = write_source(add_source(ADD + "# other\n"), tmp_path)
    assert first == again
    assert first != other
    assert first.read_text() == add_source().text
    assert load_function(first, "add").__name__ == "add"
    assert sorted(tmp_path.iterdir()) == sorted([first, other])


def test_a_warp_of_spills_is_counted_in_bytes() -> None:
    log = (
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "    48 bytes stack frame, 60 bytes spill stores, 64 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 1 barriers\n"
    )
    assert read_ptxas_log(log) == (255, 124)
    assert read_ptxas_log("") == (None, None)
