"""Machine code of a variant: asked for on a key, counted, and one line where nothing here compiles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from emmy_tui import assembling
from emmy_tui.assembling import NothingToCompile, assembly_lines, compiled, read_compilable
from emmy_tui.dialogs import Reading
from emmy_tui.text import ASCII, UNICODE, line_width, plain
from engine.deploy import Listed
from engine.store import CandidateQuery, Store
from engine.vocabulary import Target
from tests.emmy_tui.assembled import assembled
from tests.emmy_tui.looking import running, screen_text
from tests.emmy_tui.measured import CONTEXT, fill, matmul, over, press


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


def listed(database: Path) -> tuple[Listed, Target]:
    with Store.open(database, read_only=True) as store:
        (number,) = store.candidate_numbers(CandidateQuery(matmul().key, "", CONTEXT.key))[:1]
        return read_compilable(store.candidate_rows([number])[number])(store)


@pytest.mark.parametrize("width", [40, 76, 120])
def test_sizes_and_both_counts_side_by_side(database: Path, width: int) -> None:
    read, target = listed(database)
    lines = assembly_lines(assembled(read), target, width, UNICODE)
    texts = [" ".join(plain(line).split()) for line in lines]
    for words in ("registers 168", "spills 8 bytes", "shared memory 49152 bytes", "code 1024 bytes", "PTX", "SASS"):
        assert words in texts
    assert ("PTX instructions 8 SASS instructions 6" if width > 40 else "PTX 8 SASS 6") in texts
    assert any(text.startswith("cp.async 2 ") for text in texts)
    assert any("HGMMA 1" in text for text in texts)
    assert all(line_width(line) <= width for line in lines)
    assert all(plain(line).isascii() for line in assembly_lines(assembled(read), target, width, ASCII))


def test_without_a_disassembler_ptx_is_there_all_the_same(database: Path) -> None:
    read, target = listed(database)
    text = "\n".join(plain(line) for line in assembly_lines(replace(assembled(read), sass=""), target, 80, UNICODE))
    assert "SASS needs cuobjdump or nvdisasm" in text
    assert "ld.param" in text


def test_without_a_compiler_one_line_says_what_is_missing(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembling, "find_spec", lambda name: None if name == "triton" else object())
    with pytest.raises(NothingToCompile, match=r"need triton, not installed here: pip install '\.\[tune\]'"):
        compiled(*listed(database))


async def test_the_key_and_the_dialog_lead_there(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emmy_tui.variant_asking.compiled", lambda read, target: assembled(read))
    app = over(database)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "2", "a")
        assert isinstance(app.screen, Reading)
        assert "PTX instructions" in screen_text(app)
        await press(app, pilot, "escape", "enter")
        assert "a counts PTX and SASS" in screen_text(app)
        await press(app, pilot, "a")
        assert "SASS instructions" in screen_text(app)
        await press(app, pilot, "escape")
        assert len(app.screen_stack) == 1


async def test_a_compile_that_fails_is_a_sentence(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembling, "find_spec", lambda name: None)
    app = over(database)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "2", "a")
        assert "PTX and SASS need torch and triton" in app.footer.said
        assert len(app.screen_stack) == 1


async def test_what_comes_late_does_not_cover_another_tab(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = over(database)

    def late(read: Listed, target: Target) -> Listed:
        app.call_from_thread(app.action_tab_pins)
        return assembled(read)

    monkeypatch.setattr("emmy_tui.variant_asking.compiled", late)
    async with running(app, (100, 30)) as pilot:
        await press(app, pilot, "2", "a")
        assert len(app.screen_stack) == 1
        assert "the variant is compiled" in app.footer.said


@pytest.mark.skipif(bool(assembling.missing_compiler()), reason="needs torch and triton")
def test_a_row_is_compiled_for_the_chip_that_it_was_measured_on(database: Path) -> None:
    read, target = listed(database)
    found = compiled(read, target)
    assert found.registers
    assert found.code_bytes
    assert "PTX instructions" in "\n".join(plain(line) for line in assembly_lines(found, target, 100, UNICODE))
