"""Assembling with controls: PTX is frozen once, only ptxas runs again, and nothing falls back in silence."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from triton.backends.nvidia.compiler import get_ptxas_version

from engine.codegen import CONTROLS_FOLDER, machine_code
from engine.runtime import BuildError, CompiledSource, compile_source
from engine.vocabulary import FailureKind, Target
from tests.measure.fake_ptxas import assemblies, fake_ptxas
from tests.runtime.sources import matmul_source


@pytest.fixture(autouse=True)
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A ptxas of our own in a folder with blanks, and a compile folder that takes controls."""
    folder = tmp_path / "the tools"
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(fake_ptxas(folder)))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_STORE_BINARY_ONLY", "1")
    get_ptxas_version.cache_clear()
    (tmp_path / "sources" / CONTROLS_FOLDER).mkdir(parents=True)
    yield folder
    get_ptxas_version.cache_clear()


def offer(folder: Path, text: str, suffix: str = "acf") -> str:
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    (folder / CONTROLS_FOLDER / f"{sha256}.{suffix}").write_text(text)
    return sha256


def compiled(folder: Path, acf: str = "") -> CompiledSource:
    return compile_source(replace(matmul_source(), acf=acf), Target(), folder)


def test_controls_change_the_code_and_only_ptxas_runs(tmp_path: Path, fake: Path) -> None:
    folder = tmp_path / "sources"
    plain = compiled(folder)
    slower = compiled(folder, offer(folder, "slower"))
    other = compiled(folder, offer(folder, "other"))
    codes = {machine_code(one.kernel.kernel) for one in (plain, slower, other)}
    assert len(codes) == 3
    assert slower.build.code_bytes is not None
    assert plain.build.code_bytes is not None
    assert slower.build.code_bytes > plain.build.code_bytes
    assert slower.build.registers is not None
    assert slower.build.shared_bytes == plain.build.shared_bytes
    assert slower.kernel.asm["cubin"] == slower.kernel.kernel
    assert assemblies(fake) == ["", "slower", "other"]
    assert len(list((folder / "ptx").glob("*.ptx"))) == 1
    again = compiled(folder, offer(folder, "slower"))
    assert again.kernel.kernel == slower.kernel.kernel
    assert again.build.registers == slower.build.registers
    assert len(assemblies(fake)) == 3, "a binary that is there is not assembled again"


def test_controls_come_first_or_last_alike(tmp_path: Path, fake: Path) -> None:
    folder = tmp_path / "sources"
    first = compiled(folder, offer(folder, "slower"))
    shutil.rmtree(tmp_path / "cache")
    shutil.rmtree(folder / "ptx")
    plain = compiled(folder)
    assert machine_code(plain.kernel.kernel) != machine_code(first.kernel.kernel)
    assert machine_code(compiled(folder, offer(folder, "slower")).kernel.kernel) == machine_code(first.kernel.kernel)


def test_a_path_with_blanks_works(tmp_path: Path) -> None:
    folder = tmp_path / "sources and more"
    (folder / CONTROLS_FOLDER).mkdir(parents=True)
    plain, slower = compiled(folder), compiled(folder, offer(folder, "slower"))
    assert machine_code(plain.kernel.kernel) != machine_code(slower.kernel.kernel)


def test_a_plain_option_takes_the_same_way(tmp_path: Path) -> None:
    folder = tmp_path / "sources"
    option = compiled(folder, offer(folder, "--opt-level 0", "options"))
    slower = compiled(folder, offer(folder, "slower"))
    assert machine_code(option.kernel.kernel) == machine_code(slower.kernel.kernel)


@pytest.mark.parametrize(
    ("text", "words"), [("reject", "ptxas: Invalid compiler controls file"), ("crash", "error code")]
)
def test_what_ptxas_says_is_the_candidates_failure(tmp_path: Path, text: str, words: str) -> None:
    folder = tmp_path / "sources"
    with pytest.raises(BuildError) as caught:
        compiled(folder, offer(folder, text))
    assert caught.value.failure.kind is FailureKind.COMPILE_ERROR
    assert words in caught.value.failure.cause
    assert compiled(folder).build.registers, "the kernel without controls is there all the same"


def test_missing_controls_are_no_silent_fallback(tmp_path: Path) -> None:
    for folder in (tmp_path / "sources", tmp_path / "without"):
        with pytest.raises(BuildError) as caught:
            compiled(folder, "ab" * 32)
        assert "the controls file abababababab is not here" in caught.value.failure.cause


def test_a_run_without_controls_keeps_no_ptx(tmp_path: Path) -> None:
    compiled(tmp_path / "plain")
    assert [path.suffix for path in (tmp_path / "plain").iterdir()] == [".py"]
