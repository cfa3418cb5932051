"""Code and docs say what is, not what was: the history is in git."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
HISTORY = re.compile(
    "|".join((r"\bno\s+longer\b", r"\bpreviously\b", r"\bused\s+to\b", r"\bformerly\b", r"\bissue\s+#", r"\bTODO\b"))
    + r"|\bFIXME\b|\bto be written\b",
    re.IGNORECASE,
)
VAGUE = {"utils", "helpers", "common", "manager", "misc"}
TEXTS = sorted(
    path
    for top in ("engine", "emmy_tui", "tests", ".ci", "README.md", "pyproject.toml")
    for path in ([ROOT / top] if (ROOT / top).is_file() else (ROOT / top).rglob("*"))
    if path.is_file()
    and (path.suffix in {".py", ".md", ".toml", ".tcss"} or path.parent.name == ".ci")
    and path != Path(__file__)
)


def test_the_pattern_finds_history() -> None:
    assert all(HISTORY.search(text) for text in ("It no longer runs", "this used\nto work", "see issue #3", "Formerly"))
    assert HISTORY.search("a knob is used, too") is None


def test_no_history() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for path, text in ((path, path.read_text()) for path in TEXTS)
        for match in HISTORY.finditer(text)
    ]
    assert found == []


def test_no_vague_names() -> None:
    assert [path for path in TEXTS if path.suffix == ".py" and path.stem.strip("_") in VAGUE] == []
