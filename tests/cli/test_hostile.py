"""A database that somebody edited: every command ends with an exit code and a sentence, and changes nothing of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine.cli.application import main
from tests.cli.hostile import VALUES, cells, counted, edit, edited_json, fill, read

COMMANDS = (
    *(("eval", "variants"), ("eval", "variants", "--json"), ("eval", "failures"), ("eval", "groupings", "--json")),
    *(("eval", "groupings"), ("eval", "knobs"), ("pins",), ("pins", "--json", "--history"), ("explain",)),
    *(("export", "-o", "x.json"), ("export", "--python", "-o", "x.py"), ("pin", "matmul"), ("unpin", "matmul")),
    *(("merge", "e.db", "good.db"), ("merge", "good.db", "e.db", "-o", "c.db")),
    *(("tune", "--device", "replay", "-q"), ("import", "good.json"), ("explain", "--json"), ("compile", "-o", "out")),
    *(("eval", "prior"), ("eval", "acf"), ("eval", "kernels"), ("fit",)),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile")
    fill(made / "base.db")
    shutil.copy(made / "base.db", made / "good.db")
    return made


@pytest.fixture(scope="module")
def every_cell(folder: Path) -> list[tuple[str, str, int]]:
    return cells(folder / "base.db")


def leave(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return int(left.value.code or 0)


def assert_one_sentence(folder: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """The command on the edited database: no traceback, none in the log either, and nothing of it lost."""
    arguments = [*command, *([] if command[0] == "merge" else ["--db", "e.db"])]
    before = counted(folder / "e.db")
    code = leave(arguments)
    said = capsys.readouterr()
    assert code in (0, 1, 2), said.err
    assert "Traceback" not in said.err + said.out
    assert "unexpected" not in said.err
    assert "internal error" not in said.err
    assert code == 0 or said.err.startswith("emmy: ")
    after = counted(folder / "e.db")
    assert all(after[table] >= count for table, count in before.items())


@pytest.mark.usefixtures("short_fits")
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_an_edited_cell_is_at_most_a_sentence(
    folder: Path,
    every_cell: list[tuple[str, str, int]],
    data: st.DataObject,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    fresh(folder)
    table, column, rowid = data.draw(st.sampled_from(every_cell))
    before = read(folder / "base.db", table, column, rowid)
    values: st.SearchStrategy[Any] = st.sampled_from(VALUES)
    if isinstance(before, str) and before[:1] in ("{", "["):
        values |= edited_json(before)
    edit(folder / "e.db", table, column, rowid, data.draw(values))
    assert_one_sentence(folder, data.draw(st.sampled_from(COMMANDS)), capsys)


def fresh(folder: Path) -> None:
    """A new copy to edit, and nothing of the last example."""
    for pattern in ("e.db*", "x.*", "c.db*", "good.db-*"):
        for path in folder.glob(pattern):
            path.unlink()
    shutil.copy(folder / "base.db", folder / "e.db")
    if not (folder / "good.json").exists():
        assert leave(["export", "--db", "good.db", "-o", "good.json"]) == 0


BODIES = (
    '{"family": "pointwise", "label": "x\'\\"\\n; import os", "body": {"ops": []}}',
    '{"family": "exec", "label": "", "body": {"ops": [{"kind": "system", "inputs": [], "shape": [], "dtype": "x"}]}}',
    "x" * 10_000_000,
    '"' + "y" * 9_999_998 + '"',
    "[" * 100_000,
)


@pytest.mark.parametrize("body", BODIES, ids=("quotes", "unknown op", "10 MB", "10 MB text", "nesting"))
def test_an_edited_body_is_at_most_a_sentence(
    folder: Path, body: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for table, column in (("kernel", "body"), ("run", "program"), ("grouping", "plan")):
        for command in (COMMANDS[10], COMMANDS[11], ("explain",), COMMANDS[14]):
            fresh(folder)
            edit(folder / "e.db", table, column, 1, body)
            assert_one_sentence(folder, command, capsys)


@pytest.mark.parametrize("cut", [0, 1, 10, 500, 5000])
def test_a_file_that_is_cut_off_changes_nothing(
    folder: Path, cut: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    fresh(folder)
    text = (folder / "good.json").read_text()
    (folder / "cut.json").write_text(text[:cut])
    before = (folder / "e.db").read_bytes()
    assert leave(["import", "cut.json", "--db", "e.db"]) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith(f"emmy: {(folder / 'cut.json').absolute()} is no")
    assert complaint.count("\n") == 1
    assert (folder / "e.db").read_bytes() == before


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@example(data=None)
def test_an_edited_file_is_at_most_a_sentence(
    folder: Path, data: st.DataObject | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    fresh(folder)
    text = (folder / "good.json").read_text()
    (folder / "edited.json").write_text(text if data is None else data.draw(edited_json(text)))
    code = leave(["import", "edited.json", "--db", "e.db", "--json"])
    said = capsys.readouterr()
    assert code in (0, 2), said.err
    assert "unexpected" not in said.err
    assert code == 2 or json.loads(said.out)
