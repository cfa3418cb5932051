"""How many instructions of which kind a kernel became, from the text of its PTX and its SASS.

Kinds are opcodes without the types they work on, since what a person compares is how often a kernel loads, multiplies
or waits. A kind of PTX keeps the memory or the unit that it names (`ld.global`, `wgmma.mma_async`), one of SASS is its
first word. Padding behind the code (SASS's NOP) is no instruction of the program.
"""

from __future__ import annotations

import re
from collections import Counter

_PTX = re.compile(r"^\s*(?:\{\s*)?(?:@!?%\w+\s+)?([a-z][a-z0-9_]*)((?:\.[a-zA-Z0-9_]+|::[a-z0-9_]+)*)(?=[\s;]|$)")
_SASS = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)")
_TWO_WORDS = frozenset(
    ("atom", "bar", "barrier", "cp", "fence", "ld", "ldmatrix", "mbarrier", "mma", "prefetch", "red", "st", "wgmma")
)
_PADDING = "NOP"


def ptx_instructions(text: str) -> Counter[str]:
    """Kinds of PTX instructions with their number; directives, labels and comments are none."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        match = _PTX.match(line)
        if match is not None:
            word, rest = match[1], match[2].replace("::", ".").split(".")
            second = rest[1] if len(rest) > 1 and word in _TWO_WORDS else ""
            found[f"{word}.{second}" if second else word] += 1
    return found


def sass_instructions(text: str) -> Counter[str]:
    """Kinds of SASS instructions with their number, as cuobjdump and nvdisasm print them."""
    found = Counter(match[1] for match in map(_SASS.match, text.splitlines()) if match is not None)
    found.pop(_PADDING, None)
    return found
