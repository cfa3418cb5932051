"""Every way out that a sentence names can be taken: each option is one of the program that the sentence speaks of, and
another database is named as who says it lets it be named."""

from __future__ import annotations

import argparse
import ast
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer

import emmy_tui
import engine.store
from emmy_tui import opening
from emmy_tui.database_source import DatabaseSource
from emmy_tui.main import arguments_parser, check
from emmy_tui.opening import check_run, frame_of, open_source, retune_source
from emmy_tui.refusal import TO_LOOK, TO_WRITE, BadInput
from engine.cli.application import application
from engine.store import BadRow, StoreError
from engine.store.errors import explain
from engine.store.schema import SCHEMA
from tests.emmy_tui.recorded import record
from tests.emmy_tui.scripted import failed_events
from tests.emmy_tui.test_source import until

CODE = "torch.mm(torch.ones(3, 3), torch.ones(3, 3))"
LOOKS, WRITES = ["tune.db"], ["--code", CODE]
"""The two kinds of command lines that open a database."""


def accepts(arguments: list[str]) -> bool:
    """Whether `emmy-tui` takes this command line, as far as it looks before it opens anything."""
    try:
        check(arguments_parser().parse_args(arguments))
    except (BadInput, SystemExit):
        return False
    return True


def can_be_taken(sentence: str, said_to: list[str]) -> bool:
    """Whether the way in which the sentence names another database is one for who gave this command line."""
    named = re.findall(r" with (\S+(?: DB)?)$", sentence)
    if not named:
        return not re.search(r"name (another|a) database[^;]*$", sentence)
    (how,) = named
    if how == TO_LOOK:
        return accepts(["another.db"])
    return accepts([*said_to, how, "another.db"])


def test_what_is_accepted_is_told_from_what_is_not() -> None:
    assert accepts([*WRITES, TO_WRITE, "another.db"])
    assert not accepts([*LOOKS, TO_WRITE, "another.db"])
    assert can_be_taken(f"x can't be read; name another database with {TO_LOOK}", LOOKS)
    assert not can_be_taken(f"x can't be read; name another database with {TO_WRITE}", LOOKS)
    assert not can_be_taken("x can't be read; name another database", LOOKS), "it doesn't say how"


def missing(path: Path) -> None: ...


def folder(path: Path) -> None:
    path.mkdir()


def empty(path: Path) -> None:
    path.touch()


def text(path: Path) -> None:
    path.write_text("no database at all " * 400)


def another_programs(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE note (text TEXT)")


def newer(path: Path) -> None:
    record(path, failed_events())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (str(SCHEMA + 1),))
        connection.commit()


def without_a_table(path: Path) -> None:
    record(path, failed_events())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE pin")


def cut_short(path: Path) -> None:
    record(path, failed_events())
    os.truncate(path, path.stat().st_size // 2)


def garbled(path: Path) -> None:
    record(path, failed_events())
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3800)


SPOILT = [missing, folder, empty, text, another_programs, newer, without_a_table, cut_short, garbled]


@pytest.mark.parametrize("spoil", SPOILT)
def test_of_a_database_that_can_not_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: name)
    monkeypatch.setattr(opening, "has_driver", lambda: True)
    path = tmp_path / "tune.db"
    spoil(path)
    look = arguments_parser().parse_args([str(path)])
    ways_in: list[tuple[Callable[[], object], list[str]]] = [
        (lambda: open_source(look), LOOKS),
        (lambda: frame_of(look), LOOKS),
        (lambda: retune_source(look, path, []), LOOKS),
    ]
    if spoil is not missing:  # --code makes one
        ways_in.append((lambda: check_run(CODE, path, "cuda:0"), WRITES))
    for way_in, said_to in ways_in:
        with pytest.raises(BadInput) as refused:
            way_in()
        assert can_be_taken(str(refused.value), said_to), str(refused.value)


@pytest.mark.parametrize("spoil", SPOILT)
def test_of_a_database_that_is_looked_at(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    path = tmp_path / "tune.db"
    spoil(path)
    source = DatabaseSource(path)
    try:
        until(lambda: bool(source.trouble))
        assert can_be_taken(source.trouble, LOOKS), source.trouble
    finally:
        source.close()


def kinds(root: type[StoreError]) -> Iterator[type[StoreError]]:
    for kind in root.__subclasses__():
        if kind.__module__ == "engine.store.errors":
            yield kind
            yield from kinds(kind)


def said_by_sqlite(name: str) -> sqlite3.Error:
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorname = name
    return error


NAMES = ("FULL", "NOTADB", "CORRUPT", "BUSY", "LOCKED", "READONLY", "CANTOPEN", "PERM", "AUTH", "IOERR", "ERROR")
OF_THE_SYSTEM = [OSError(number, os.strerror(number)) for number in (1, 2, 5, 13, 28, 30, 122)]


@pytest.mark.parametrize("error", [*(said_by_sqlite(f"SQLITE_{name}") for name in NAMES), *OF_THE_SYSTEM], ids=str)
@pytest.mark.parametrize("reading", [True, False])
def test_of_what_sqlite_and_the_system_say(error: Exception, *, reading: bool) -> None:
    said = explain(error, Path("/data/tune.db"), reading=reading)
    assert not re.search(r" with (--|db=|emmy)", str(said)), "true of every program"
    assert can_be_taken(said.named_by(TO_LOOK), LOOKS)
    assert can_be_taken(said.named_by(TO_WRITE), WRITES)
    assert said.in_python == str(said).rstrip() + (" with db=" if said.in_python != str(said) else "")


@pytest.mark.parametrize("kind", [StoreError, *(one for one in kinds(StoreError) if one is not BadRow)])
def test_every_kind_leaves_it_open_how_a_database_is_named(kind: type[StoreError]) -> None:
    error = kind("cause", "name another database", names=True)
    assert str(error) == "cause; name another database"
    assert error.named_by(TO_LOOK) == f"{error} with {TO_LOOK}"
    assert kind("cause", "wait", in_python="await").named_by(TO_LOOK) == "cause; wait"


OPTION = re.compile(r"(?<![\w`-])--[a-z][a-z-]+")


def sentences(folder: str | None, names: str = "**/*.py") -> Iterator[tuple[str, str]]:
    """Every text in the code under a module's folder but its docstrings and names of options, with the file that it is
    in; … for what is put in."""
    for file in sorted(Path(folder or "").parent.glob(names)):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
        no_texts = inner | {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = ""
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in no_texts:
                text = node.value
            if not OPTION.fullmatch(text):
                yield file.name, text


def options_of(words: list[str]) -> set[str]:
    """The options of the `emmy` command that these words begin with."""
    command: Any = typer.main.get_command(application([]))
    options = {option for one in command.params for option in one.opts}
    for word in words:
        if word not in getattr(command, "commands", ()):
            break
        command = command.commands[word]
        options = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    return options


def of_the_screens() -> set[str]:
    parser = arguments_parser()
    actions: list[argparse.Action] = parser._actions
    return {option for action in actions for option in action.option_strings}


def unknown(sentence: str) -> list[str]:
    """The options in a sentence that the program which it speaks of doesn't have; else they are of `emmy-tui`."""
    wrong, rest = [], sentence
    for command in re.findall(r"emmy (?:[a-z]+ )*[^`;]*", sentence):
        words = command.split()[1:]
        wrong += [option for option in OPTION.findall(command) if option not in options_of(words)]
        rest = rest.replace(command, "")
    known = of_the_screens()
    return wrong + [option for option in OPTION.findall(rest) if option not in known]


def test_every_option_in_a_text_of_the_screens_is_there() -> None:
    found = [(name, text, unknown(text)) for name, text in sentences(emmy_tui.__file__)]
    assert sum(bool(OPTION.search(text)) for _, text, _ in found) > 15
    assert [one for one in found if one[2]] == []


def test_a_text_of_the_store_names_no_option_but_in_a_command() -> None:
    """Whoever shows it may be any program, or Python."""
    for name, said in sentences(engine.store.__file__, "*.py"):
        bare = re.sub(r"`(emmy|emmy-tui) [^`]*`", "", said)
        assert not OPTION.search(bare), (name, said)
        assert not re.search(r" with db=", bare) or name == "errors.py", (name, said)
        for command in re.findall(r"`(emmy(?:-tui)? [^`]*)`", said):
            assert unknown(command) == [], (name, said)
