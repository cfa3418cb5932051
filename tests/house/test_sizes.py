"""No file and no function grows past what fits a head. There are no exceptions."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for package in ("engine", "emmy_tui") for path in (ROOT / package).rglob("*.py"))
FILE_LINES = 400
FUNCTION_LINES = 60


def test_there_are_sources() -> None:
    assert len(SOURCES) > 20


def test_no_file_is_too_long() -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in SOURCES}
    assert {path: count for path, count in lines.items() if count > FILE_LINES} == {}


def test_no_function_is_too_long() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: lines for name, lines in found.items() if lines > FUNCTION_LINES} == {}
