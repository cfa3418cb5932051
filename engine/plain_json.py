"""JSON that a terminal may be shown: it says the same, and holds no character that acts on one."""

from __future__ import annotations

import json
from typing import Any


def plain_json(value: Any, indent: int | None = None) -> str:
    """JSON with letters of all languages as they are, and everything that isn't printable as an escape of JSON's.

    On one line, without `indent`. Raises ValueError for numbers that JSON lacks.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    return "\n".join(line if line.isprintable() else _escaped(line) for line in text.split("\n"))


def _escaped(line: str) -> str:
    """Such characters stand in strings only, where their escapes are theirs too."""
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)
