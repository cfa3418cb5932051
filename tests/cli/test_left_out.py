"""A row that can't be read costs one sentence: every command goes on with the rest, and says which row it was."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from engine.cli.application import main
from engine.store import Store
from tests.cli.hostile import fill

FIRST = "rowid = (SELECT min(rowid) FROM {table})"
SPOILS = {
    "plan": ("grouping", f"UPDATE grouping SET plan = '{{' WHERE {FIRST.format(table='grouping')}"),
    "schedules": ("grouping", f"UPDATE grouping SET schedules = '[' WHERE {FIRST.format(table='grouping')}"),
    "pin": ("pin", "UPDATE pin SET schedule = '{'"),
    "schedule": (
        "measurement",
        "UPDATE measurement SET schedule = '{[' WHERE id = (SELECT min(id) FROM measurement WHERE status = 'ok')",
    ),
    "time": (
        "measurement",
        "UPDATE measurement SET median_us = 0 WHERE id = (SELECT min(id) FROM measurement WHERE status = 'ok')",
    ),
}
READS: dict[str, tuple[tuple[str, ...], ...]] = {
    "grouping": (
        *(
            ("explain",),
            ("explain", "--json"),
            ("compile", "-o", "out"),
            ("eval", "groupings"),
            ("eval", "groupings", "--json"),
        ),
        *(("export", "--python", "-o", "x.py"), ("tune", "--device", "replay")),
    ),
    "pin": (("explain",), ("pins",), ("pins", "--json"), ("compile", "-o", "out"), ("export", "-o", "x.json")),
    "measurement": (("eval", "variants", "--top", "1000"), ("eval", "knobs"), ("fit",)),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("rows") / "base.db")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("engine.cli.subject_options.this_place", lambda: None)
    shutil.copy(base, "t.db")


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--db", "t.db"])
    said = capsys.readouterr()
    return int(left.value.code or 0), said.out, said.err


def spoil(statement: str) -> None:
    connection = sqlite3.connect("t.db")
    assert connection.execute(statement).rowcount >= 1
    connection.commit()
    connection.close()


@pytest.mark.usefixtures("short_fits")
@pytest.mark.parametrize("what", SPOILS)
def test_commands_go_on_without_the_row_and_name_it_once(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    table, statement = SPOILS[what]
    spoil(statement)
    for command in READS[table]:
        code, out, err = told(capsys, *command)
        assert code == 0, (command, err)
        assert out
        sentences = [line for line in (out + err).splitlines() if "left out: " in line]
        assert len(sentences) == 1, (command, sentences)
        assert f"of table {table}" in sentences[0]
        assert "correct or delete that row" in sentences[0]
        if "--json" in command:
            json.loads(out.splitlines()[-1])


def test_a_program_that_cant_be_read_is_the_earlier_run_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    connection = sqlite3.connect("t.db")
    names = [row[1] for row in connection.execute("PRAGMA table_info(run)")]
    values = dict(zip(names, connection.execute("SELECT * FROM run").fetchone(), strict=True))
    later = {**values, "id": "later", "program": "{", "started_at": values["started_at"] + 10}
    marks = ", ".join("?" for _ in names)
    connection.execute(f"INSERT INTO run ({', '.join(names)}) VALUES ({marks})", [later[name] for name in names])
    connection.commit()
    connection.close()
    code, out, err = told(capsys, "explain")
    assert (code, out.splitlines()[0]) == (0, values["target"])
    assert err.count("row later of table run") == 1
    spoil("UPDATE run SET program = '{'")
    code, out, err = told(capsys, "explain")
    assert (code, out) == (2, "")
    assert "no program of" in err


@pytest.mark.parametrize("command", [("explain",), ("compile", "-o", "out"), ("run",)])
def test_a_program_is_chosen_by_its_text(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open("t.db", read_only=True) as store:
        (run,) = store.runs()
    code, out, err = told(capsys, *command, "--program", run.target.upper())
    if command == ("run",):
        assert "GPU" in err or "torch" in err
    else:
        assert (code, err) == (0, "")
        assert run.target in out
    code, out, err = told(capsys, *command, "--program", "no such program", "--json")
    assert (code, out) == (2, "[]\n")
    assert "--program" in err
    code, out, err = told(capsys, *command, "--program", "linear", "--code", "f(x)")
    assert code == 2
    assert "leave it away" in err


def test_what_was_done_is_one_json_value(capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open("t.db", read_only=True) as store:
        (stored,) = store.pins()
        key = stored.pin.kernel_key
    code, out, _ = told(capsys, "pin", key, "--json", "--note", "why")
    found: dict[str, Any] = json.loads(out)
    assert (code, found["kernel"], found["note"], found["replaced"]) == (0, key, "why", 1)
    assert found["schedule"] == stored.pin.schedule.as_dict()
    code, out, _ = told(capsys, "unpin", key, "--json")
    assert (code, json.loads(out)["kernel"]) == (0, key)
    code, out, err = told(capsys, "unpin", key, "--json")
    assert (code, out) == (2, "")
    assert "no pin" in err
    code, out, _ = told(capsys, "export", "-o", "x.json", "--json")
    wrote = json.loads(out.splitlines()[-1])
    assert (code, wrote["output"], wrote["left_out"]) == (0, str(Path("x.json").absolute()), [])
    assert wrote["schedules"] == len(json.loads(Path("x.json").read_text())["schedules"]) > 0
    code, out, _ = told(capsys, "export", "--python", "-o", "x.py", "--json")
    assert (code, json.loads(out.splitlines()[-1])["kernels"]) == (0, 2) or json.loads(out)["kernels"] > 0


@pytest.mark.parametrize("existed", [True, False])
def test_compile_leaves_nothing_half_on_a_full_disk(
    existed: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if existed:
        assert told(capsys, "compile", "-o", "out")[0] == 0
    before = {path.name: path.read_text() for path in Path("out").glob("*")}
    write = Path.write_text

    def full(path: Path, text: str, **options: Any) -> int:
        write(path, text[:10], **options)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        code, out, err = told(capsys, "compile", "-o", "out")
    assert (code, out) == (1, "")
    assert err.startswith(f"emmy: no space left on the disk of {Path('out').absolute()}, nothing was written")
    assert Path("out").exists() == existed
    assert {path.name: path.read_text() for path in Path("out").glob("*")} == before


def test_import_leaves_no_empty_database_on_a_full_disk(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(capsys, "export", "-o", "x.json")[0] == 0
    Path("t.db").unlink()

    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "t.db")

    monkeypatch.setattr("engine.store.store.put_suggestions", full)
    code, out, err = told(capsys, "import", "x.json")
    assert (code, out) == (1, "")
    assert "no space left" in err
    assert not list(Path().glob("t.db*"))


@pytest.mark.parametrize("version", ['"1"', "true", "1.0", "null", "[1]"])
def test_a_version_of_another_type_is_said(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.json").write_text(f'{{"format": "emmy schedules", "version": {version}}}')
    code, out, err = told(capsys, "import", "x.json")
    assert (code, out) == (2, "")
    assert "version" in err
    assert "export it again" in err
    assert "upgrade" not in err


def test_kernels_without_a_floor_say_why(capsys: pytest.CaptureFixture[str]) -> None:
    connection = sqlite3.connect("t.db")
    connection.execute("UPDATE context SET ceilings = NULL")
    connection.commit()
    connection.close()
    code, out, _ = told(capsys, "eval", "kernels")
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("no floor: ")]
    assert "Fake GPU" in line
