"""Each room says what it offers, and the rooms that must work without torch do: they are imported with it blocked."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = sorted(path.parent.name for path in (ROOT / "engine").glob("*/__init__.py"))
WITH_TORCH = {"runtime"}
TORCH_FREE = [
    *(f"engine.{room}" for room in ROOMS if room not in WITH_TORCH),
    "engine.snapshot",
    "engine.cli.tuning",
    "engine.cli.evaluate",
    "engine.cli.doctor",
    "emmy_tui.main",
    "emmy_tui.app",
]
IMPORTS = re.compile(r"^\s*from engine\.(\w+) import (\([^)]*\)|.+)$", re.MULTILINE)
IMPORT_BLOCKED = """
import importlib, json, os, sys, traceback

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton"):
            raise ImportError(f"{name} is blocked here", name=name)

def imported(name):
    module = importlib.import_module(name)
    missing = [one for one in getattr(module, "__all__", ()) if not hasattr(module, one)]
    return f"{name} offers what it has not: {missing}" if missing else ""

sys.meta_path.insert(0, Blocker())
import numpy, sqlite_utils, textual.app, typer  # once for all
for name in sys.argv[1:]:
    if os.fork() == 0:
        try:
            said = imported(name)
        except BaseException:
            said = traceback.format_exc()
        print(json.dumps([name, said]), flush=True)
        os._exit(0)
    os.wait()
"""


def offers(room: str) -> list[str]:
    module = ast.parse((ROOT / "engine" / room / "__init__.py").read_text())
    (offered,) = [
        ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]
    ]
    return list(offered)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_lists_what_it_offers(room: str) -> None:
    offered = offers(room)
    assert offered
    assert len(set(offered)) == len(offered)


def imported_from_rooms() -> dict[str, set[str]]:
    """The names of each room that files outside it import from it."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for path in (path for top in ("engine", "emmy_tui", "tests") for path in (ROOT / top).rglob("*.py")):
        for room, names in IMPORTS.findall(path.read_text()):
            if room in found and ROOT / "engine" / room not in path.parents:
                found[room] |= set(re.findall(r"\w+", names))
    return found


def test_a_room_offers_nothing_that_nobody_takes() -> None:
    taken = imported_from_rooms()
    offered = {room: set(offers(room)) - taken[room] for room in ROOMS if room != "cli"}
    assert {room: names for room, names in offered.items() if names} == {}


@pytest.fixture(scope="module")
def imports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each of the modules says when it is the first of this product that a process imports."""
    command = [sys.executable, "-c", IMPORT_BLOCKED, *TORCH_FREE]
    folder = tmp_path_factory.mktemp("elsewhere")
    child = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert child.returncode == 0, child.stderr
    return dict(json.loads(line) for line in child.stdout.splitlines())


@pytest.mark.parametrize("name", TORCH_FREE)
def test_imports_without_torch_and_triton(name: str, imports: dict[str, str]) -> None:
    assert imports[name] == ""
