"""Kernels in Gluon through the compiler: a binary, its report, another assembly of the same PTX, and other Tritons."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from triton.experimental.gluon import language
from triton.experimental.gluon.language.nvidia import hopper

from engine.codegen import CONTROLS_FOLDER, GLUON, Argument, KernelSource, machine_code, render
from engine.ir import Kernel
from engine.runtime import BuildError, _triton_compat, compile_source
from engine.vocabulary import FailureKind, Target
from tests.codegen.attention_bodies import attention
from tests.codegen.test_golden import attention_roles

SOURCE = render(
    Kernel("attention", attention(16, 2048, 2048, 64, "bfloat16", causal=True)),
    attention_roles(MASK="cut", OVERLAP="persistent"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / CONTROLS_FOLDER).mkdir()
    return tmp_path


def test_its_ptx_is_frozen_and_assembled_again_with_other_options(folder: Path) -> None:
    text = "--opt-level 1"
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    (folder / CONTROLS_FOLDER / f"{sha256}.options").write_text(text)
    plain = compile_source(SOURCE, Target(), folder)
    other = compile_source(replace(SOURCE, acf=sha256), Target(), folder)
    assert len(list((folder / "ptx").glob("*.ptx"))) == 1
    assert machine_code(plain.kernel.kernel) != machine_code(other.kernel.kernel)
    assert plain.build.shared_bytes == other.build.shared_bytes
    assert plain.build.registers == 168
    assert plain.build.code_bytes


def test_a_binary_comes_from_the_cache_that_another_process_filled(folder: Path) -> None:
    first, second = (compile_source(SOURCE, Target(), folder) for _ in range(2))
    assert second.kernel.kernel == first.kernel.kernel
    assert second.kernel.hash == first.kernel.hash
    assert len(list((folder / "cache").rglob("*.cubin"))) == 1


ROLES = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

@gluon.jit
def role(out0, number: gl.constexpr):
    gl.store(out0, number)

@gluon.jit
def entry(out0):
    gl.warp_specialize([(role, (out0, 0)), (role, (out0, 1))], [32], [24])
"""


def test_warps_of_all_roles_count(folder: Path) -> None:
    source = KernelSource(ROLES, "entry", (Argument("out0", "output", 0, "*i32"),), (1, 1, 1), 4, 1, dialect=GLUON)
    with pytest.raises(BuildError) as refused:
        compile_source(source, Target(), folder)
    assert refused.value.failure.kind is FailureKind.THREADS
    few = replace(source, text=ROLES.replace("[32]", "[4]"))
    assert compile_source(few, Target(), folder).kernel.metadata.num_warps == 8


def test_this_triton_has_what_is_used() -> None:
    assert _triton_compat.has_gluon()


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (language, "warp_specialize"),
        (language, "thread_barrier"),
        (hopper, "warpgroup_mma"),
        (hopper.tma, "store_wait"),
    ],
)
def test_a_triton_that_lacks_any_of_it_has_none(place: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(place, name)
    assert not _triton_compat.has_gluon()


def test_a_triton_with_other_arguments_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(roles: object, warps: object, _semantic: object = None) -> None: ...

    monkeypatch.setattr(language, "warp_specialize", other)
    assert not _triton_compat.has_gluon()
