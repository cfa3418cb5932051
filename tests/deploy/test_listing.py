"""Chosen kernels as files, and compiled in a child for a chip that isn't here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.deploy import deployment
from engine.deploy.asking import ChildError, ask_child
from engine.deploy.listing import compiled_kernels, listed_kernels, named_target
from engine.prior import ColdModel
from engine.store import Store
from engine.vocabulary import Target
from tests.deploy.samples import HERE, fill, matmul, relu


def test_texts_are_written_under_names_that_say_what_they_are(tmp_path: Path) -> None:
    with Store.open(fill(tmp_path / "t.db")) as store:
        program = store.program(store.runs()[0].id)
        chosen = deployment(program, store, HERE.key, Target(), ColdModel())
    (item,) = listed_kernels(chosen)
    (file,) = item.write(tmp_path)
    assert file.name == f"matmul_{matmul().key[:8]}.py"
    text = file.read_text()
    assert "@triton.jit" in text
    compile(text, str(file), "exec")


def test_a_kernel_is_compiled_for_a_chip_that_is_not_here(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    with Store.open(fill(tmp_path / "t.db")) as store:
        from engine.ir.plan import Program

        chosen = deployment(Program(relu().body, "relu"), store, HERE.key, Target(), ColdModel())
    steps: list[str] = []
    (item,) = compiled_kernels(listed_kernels(chosen), chosen.target, sass=True, tell=steps.append)
    assert steps == ["compiling kernel 1 of 1"]
    assert ".target sm_90" in item.ptx
    assert item.failure == ""
    assert (item.registers or 0) > 0
    assert item.spills == 0
    assert {file.suffix for file in item.write(tmp_path)} >= {".py", ".ptx"}
    if item.sass or shutil.which("cuobjdump"):
        assert "EXIT" in item.sass


def test_a_child_that_dies_is_one_sentence() -> None:
    with pytest.raises(ChildError, match="the process died during start"):
        ask_child("engine.deploy.no_such_module", {})


@pytest.mark.parametrize("name", ["sm_90", "SM_90a", "sm90"])
def test_a_chip_is_known_by_its_name(name: str) -> None:
    like = Target(multiprocessors=7)
    assert named_target(name, like) is like


def test_another_chip_has_its_own_shared_memory() -> None:
    found = named_target("sm_89", Target())
    assert (found.capability, found.shared_bytes) == (89, 101_376)


@pytest.mark.parametrize("name", ["", "sm_1", "gfx942", "sm_75", "h100"])
def test_an_unknown_chip_is_one_sentence(name: str) -> None:
    with pytest.raises(ValueError, match="is not known: it is one of sm_80, "):
        named_target(name, Target())
