"""Every process that is started gets a copy of the environment.

Without one a child takes the environment of the process itself, which another thread may move while the child begins
(libraries set variables when they are imported): the start then fails with "Bad address", now and then.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
STARTERS = {"Popen", "run", "call", "check_call", "check_output"}


def starts(tree: ast.AST) -> list[ast.Call]:
    """Calls such as `subprocess.run(...)`."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in STARTERS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "subprocess"
    ]


def test_a_child_gets_an_environment_of_its_own() -> None:
    found = [
        (path, call)
        for room in ("engine", "emmy_tui")
        for path in sorted((ROOT / room).rglob("*.py"))
        for call in starts(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert len(found) >= 8
    without = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path, call in found
        if not any(keyword.arg == "env" for keyword in call.keywords)
    ]
    assert without == []
