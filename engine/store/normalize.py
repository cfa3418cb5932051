"""When do two failures have the same cause? When their texts are equal once everything that varies is left out.

Addresses, paths, hashes, numbers, shapes and the compiler's numbered names become placeholders; a number that is
part of a name ("bf16", "sm_90") stays, since it says what failed.
"""

from __future__ import annotations

import re

LIMIT = 300
"""Characters of a normalized cause."""

_NUMBER = r"[-+]?\d+(?:\.\d+)*(?:[eE][-+]?\d+)?"
_UNIT = r"(?:[KMGT]i?B|[kMGT]?B|bytes|us|ms|ns|s|x|%)"

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\x1b\[[0-9;?]*[ -/]*[@-~]", ""),
        (r"[\x00-\x1f\x7f\s]+", " "),
        (r"\b0[xX][0-9a-fA-F]+\b", "<address>"),
        (r"(?<![\w/<])(?:[A-Za-z]:\\[^\s:\"'(),;]*|~?/(?:[^\s:\"'(),;/]+/)+[^\s:\"'(),;]*)(?::\d+)*", "<path>"),
        (r"\b[\w-]+\.(?:py|ptx|cubin|ttir|ttgir|llir|cu|ll|o|so)\b(?::\d+)*", "<file>"),
        (r"(?<=[A-Za-z0-9])_(?=[0-9a-f]*\d)[0-9a-f]{6,}\b", "_<hash>"),
        (r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", "<hash>"),
        (r"%[A-Za-z_]?\w+", "%<name>"),
        (r"#([A-Za-z_]+?)\d+\b", r"#\1"),
        (r"\b\d+(?:x\d+)+(?=x?[A-Za-z]|\b)", "<shape>"),
        (rf"(?<![\w.<]){_NUMBER}(?=\s?{_UNIT}\b)", "<n>"),
        (rf"(?<![\w.<]){_NUMBER}(?!\w)", "<n>"),
        (r" {2,}", " "),
    )
)


def normalize_cause(cause: str) -> str:
    """One line of at most 300 characters; normalizing it again changes nothing."""
    for pattern, replacement in _RULES:
        cause = pattern.sub(replacement, cause)
    return cause.strip()[:LIMIT].strip()
