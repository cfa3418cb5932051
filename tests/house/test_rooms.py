"""Each room says what it offers, and the rooms that must work without torch do: they are imported with it blocked."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = sorted(path.parent.name for path in (ROOT / "engine").glob("*/__init__.py"))
WITH_TORCH = {"runtime"}
TORCH_FREE = [
    *(f"engine.{room}" for room in ROOMS if room not in WITH_TORCH),
    "engine.session",
    "engine.snapshot",
    "engine.cli.tuning",
    "engine.cli.evaluate",
    "engine.cli.doctor",
    "emmy_tui.main",
    "emmy_tui.app",
]
IMPORT_BLOCKED = """
import importlib, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton"):
            raise ImportError(f"{name} is blocked here", name=name)

sys.meta_path.insert(0, Blocker())
module = importlib.import_module(sys.argv[1])
missing = [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)]
sys.exit(f"{module.__name__} offers what it has not: {missing}" if missing else 0)
"""


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_lists_what_it_offers(room: str) -> None:
    module = ast.parse((ROOT / "engine" / room / "__init__.py").read_text())
    offered = [
        ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]
    ]
    assert len(offered) == 1, f"engine/{room}/__init__.py has no __all__"
    assert offered[0]
    assert len(set(offered[0])) == len(offered[0])


@pytest.mark.parametrize("name", TORCH_FREE)
def test_imports_without_torch_and_triton(name: str, tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", IMPORT_BLOCKED, name], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert child.returncode == 0, child.stderr
