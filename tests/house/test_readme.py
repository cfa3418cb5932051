"""What the README tells people to type exists: the commands, their options, the keys, the extras, the files."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

import engine
from emmy_tui.action import TABS
from emmy_tui.actions import ACTIONS, spoken
from emmy_tui.main import arguments_parser
from engine.cli.application import application

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
BLOCKS = [
    shlex.split(command)
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    for command in line.split(" && ")
]
COMMANDS = BLOCKS + [shlex.split(text) for text in re.findall(r"`(emmy[^`]*)`", README) if "/" not in text]
EMMY = [words for words in COMMANDS if words[0] == "emmy"]
SCREENS = [words for words in COMMANDS if words[0] == "emmy-tui"]
LEAVES = (
    *("tune", "explain", "compile", "run", "import", "export", "merge", "pin", "unpin", "pins", "doctor", "fit"),
    *(f"eval {name}" for name in ("variants", "kernels", "acf", "failures", "groupings", "prior", "knobs")),
)


def command_of(words: list[str]) -> tuple[typer.core.TyperCommand, int]:
    """The command that the words name, and how many of them name it."""
    command = typer.main.get_command(application(words[1:]))
    context = command.make_context("emmy", [], resilient_parsing=True)
    named = 1
    for word in words[1:]:
        found = command.get_command(context, word) if hasattr(command, "get_command") else None
        if found is None:
            break
        command, named = found, named + 1
    assert not hasattr(command, "get_command") or words[1].startswith("-"), f"{words} names no command"
    return command, named


def options_of(words: list[str]) -> set[str]:
    """The option strings of the command that the words name."""
    command, _ = command_of(words)
    return {text for parameter in command.params for text in (*parameter.opts, *parameter.secondary_opts)}


def section(title: str) -> str:
    return README.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_two_commands_are_there() -> None:
    assert "pip install . && emmy-tui --demo" in README
    assert "pip install '.[test]' && pytest" in README


@pytest.mark.parametrize("words", EMMY, ids=" ".join)
def test_an_emmy_command_has_the_options(words: list[str]) -> None:
    assert {word for word in words if re.fullmatch(r"--?[a-z][a-z0-9-]*", word)} <= options_of(words)


@pytest.mark.parametrize("words", [words for words in BLOCKS if words[0] == "emmy"], ids=" ".join)
def test_an_emmy_command_to_copy_is_understood(words: list[str]) -> None:
    """Parsed as it would be run: no option without its value, no argument too many, no value out of range."""
    command, named = command_of(words)
    command.make_context(" ".join(words[:named]), list(words[named:]))


@pytest.mark.parametrize("words", SCREENS, ids=" ".join)
def test_an_emmy_tui_command_is_understood(words: list[str]) -> None:
    parsed = arguments_parser().parse_args(words[1:])
    assert parsed.demo or parsed.code or parsed.database or parsed.print_config or len(words) == 1


def test_the_table_has_every_command() -> None:
    rows = re.findall(r"^\| `emmy ([a-z]+(?: [a-z]+)?)\b", section("The command line"), re.MULTILINE)
    named = {row if row.startswith("eval ") else row.split(" ")[0] for row in rows}
    assert named == set(LEAVES)
    top = typer.main.get_command(application([]))
    evaluate = top.commands["eval"]
    assert {*top.commands} - {"eval"} | {f"eval {name}" for name in evaluate.commands} == named


@pytest.mark.parametrize("name", LEAVES)
def test_every_help_text_is_a_sentence(name: str) -> None:
    """What `--help` says of a command, of its options and of its arguments is there, and ends as a sentence does."""
    command, _ = command_of(["emmy", *name.split()])
    texts = [command.help, *(parameter.help for parameter in command.params)]
    assert [text for text in texts if not text or not text.rstrip().endswith(".")] == []


def test_the_options_named_in_the_text_exist() -> None:
    every = {option for name in LEAVES for option in options_of(["emmy", *name.split()])}
    every |= {option for action in arguments_parser()._actions for option in action.option_strings}
    of_the_bench = {"--svg"}
    assert set(re.findall(r"`(--[a-z0-9-]+)", README)) <= every | of_the_bench


def test_the_tabs_and_their_keys() -> None:
    rows = re.findall(r"^\| (\d) (\w+) \| .* \| (.*) \|$", section("The screens"), re.MULTILINE)
    assert [(int(number), name.lower()) for number, name, _ in rows] == list(enumerate(TABS, start=1))
    for _, name, keys in rows:
        tab = name.lower()
        known = {spoken(key) for action in ACTIONS if not action.tabs or tab in action.tabs for key in action.keys}
        assert {key for key in re.findall(r"`([^`]+)`", keys) if len(key) == 1 or key == "enter"} <= known


def test_the_keys_of_steering_exist() -> None:
    known = {spoken(key) for action in ACTIONS for key in action.keys}
    assert set(re.findall(r"`(.)`", section("Steering"))) <= known


def test_the_python_code_calls_what_exists() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    calls = {ast.unparse(node.func): node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)}
    signature = inspect.signature(engine.compile)
    call = calls["engine.compile"]
    signature.bind(*call.args, **{str(keyword.arg): keyword.value for keyword in call.keywords})
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in calls["torch.compile"].keywords}
    assert given["backend"] in PROJECT["entry-points"]["torch_dynamo_backends"]
    assert set(given["options"]) <= set(signature.parameters)


def test_pip_commands_name_real_extras() -> None:
    wanted = {
        extra
        for words in COMMANDS
        if words[0] == "pip"
        for extras in re.findall(r"\[([\w,]+)\]", " ".join(words))
        for extra in extras.split(",")
    }
    assert wanted <= set(PROJECT["optional-dependencies"])
    assert wanted


def test_linked_files_exist() -> None:
    linked = re.findall(r"\]\(([^)]+)\)", README)
    modules = [f"{name.replace('.', '/')}.py" for name in re.findall(r"python -m ([\w.]+)", README)]
    recorded = re.findall(r"\b(tests/data/[\w.]+)", README)
    assert modules
    assert [path for path in (*linked, *modules, *recorded) if not (ROOT / path).is_file()] == []


def test_every_room_is_in_the_floors() -> None:
    rooms = {path.parent.name for path in (ROOT / "engine").glob("*/__init__.py")} - {"data"}
    floors = section("Architecture").split("```")[1]
    assert {room for room in rooms if not re.search(rf"\b{room}\b", floors)} == set()


def test_the_floors_are_those_that_are_checked() -> None:
    """From the top down, the rooms stand in the order of the contract that `lint-imports` holds."""
    layers = PYPROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    checked = [{name.split(".")[-1] for name in layer.split(" | ")} for layer in layers]
    told = [set(re.findall(r"\w+", line[:44])) for line in section("Architecture").split("```")[1].strip().splitlines()]
    assert told[:-1] == checked[: len(told) - 1]


def test_options_of_some_commands_are_said_with_the_commands_that_have_them() -> None:
    text = " ".join(section("The command line").split())
    for option in ("--program", "--kernel"):
        (named,) = re.findall(rf"`{option} TEXT` [^(]*\(([^)]*)\)", text)
        plain, _, evaluations = named.partition("`eval ")
        said = set(re.findall(r"`(?:emmy )?(\w+)`", plain))
        said |= {f"eval {name}" for name in re.findall(r"\w+(?=`)", f"{evaluations}")}
        have = {leaf for leaf in LEAVES if option in options_of(["emmy", *leaf.split()])}
        assert said == have - {"import"}  # whose --kernel gives a name
    for option in ("-v", "-q"):
        assert {leaf for leaf in LEAVES if option in options_of(["emmy", *leaf.split()])} == {"tune"}
        assert f"`emmy tune {option}`" in text
