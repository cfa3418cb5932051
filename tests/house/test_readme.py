"""What the README tells people to type exists: the commands, their options, the extras, the files."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

from emmy_tui.main import arguments_parser
from engine.cli.application import application

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMMANDS = [
    shlex.split(command)
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    for command in line.split(" && ")
]
COMMANDS += [shlex.split(text) for text in re.findall(r"`(emmy[^`]*)`", README) if "/" not in text]
EMMY = [words for words in COMMANDS if words[0] == "emmy"]
SCREENS = [words for words in COMMANDS if words[0] == "emmy-tui"]


def options_of(words: list[str]) -> set[str]:
    """The option strings of the command that the words name."""
    command = typer.main.get_command(application(words[1:]))
    context = command.make_context("emmy", [], resilient_parsing=True)
    for word in words[1:]:
        found = command.get_command(context, word) if hasattr(command, "get_command") else None
        if found is None:
            break
        command = found
    assert not hasattr(command, "get_command") or words[1].startswith("-"), f"{words} names no command"
    return {text for parameter in command.params for text in (*parameter.opts, *parameter.secondary_opts)}


def test_the_two_commands_are_there() -> None:
    assert "pip install . && emmy-tui --demo" in README
    assert "pip install '.[test]' && pytest" in README


@pytest.mark.parametrize("words", EMMY, ids=" ".join)
def test_an_emmy_command_has_the_options(words: list[str]) -> None:
    assert {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)} <= options_of(words)


@pytest.mark.parametrize("words", SCREENS, ids=" ".join)
def test_an_emmy_tui_command_is_understood(words: list[str]) -> None:
    parsed = arguments_parser().parse_args(words[1:])
    assert parsed.demo or parsed.code or parsed.database or len(words) == 1


def test_the_options_named_in_the_text_exist() -> None:
    every = {
        option for name in ("tune", "doctor", "explain", "compile", "run") for option in options_of(["emmy", name])
    }
    every |= {option for name in ("variants", "failures", "groupings") for option in options_of(["emmy", "eval", name])}
    assert set(re.findall(r"`(--[a-z-]+)", README)) <= every | {"--demo"}


def test_pip_commands_name_real_extras() -> None:
    wanted = {extra for words in COMMANDS if words[0] == "pip" for extra in re.findall(r"\[(\w+)\]", " ".join(words))}
    assert wanted <= set(PROJECT["optional-dependencies"])
    assert wanted


def test_linked_files_exist() -> None:
    linked = re.findall(r"\]\(([^)]+)\)", README)
    assert [path for path in linked if not (ROOT / path).is_file()] == []


def test_every_room_is_in_the_floors() -> None:
    rooms = {path.parent.name for path in (ROOT / "engine").glob("*/__init__.py")} - {"data"}
    floors = README.split("## Architecture")[1].split("```")[1]
    assert {room for room in rooms if not re.search(rf"\b{room}\b", floors)} == set()
