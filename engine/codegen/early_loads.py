"""Straight lines of text with every load in front: memory answers all of them at once.

Triton keeps loads in the order of the text, and none passes a barrier. So a load that is written where its value is
first needed starts to wait only there, and an epilogue that computes between its loads waits once for each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LOAD = re.compile(r"\s*\w+ = tl\.load\(")
_NAME = re.compile(r"\b[A-Za-z_]\w*")


def loads_first(lines: Sequence[str]) -> list[str]:
    """The lines in an order in which loads, with what their addresses and masks are made of, come before all others.

    Each line assigns names that no other one assigns, or stores where no load reads.

    >>> loads_first(["a = acc * 2", "i = tl.arange(0, 8)", "x = tl.load(p + i)", "b = a * x"])
    ['i = tl.arange(0, 8)', 'x = tl.load(p + i)', 'a = acc * 2', 'b = a * x']
    """
    assigned = [line.partition(" = ") for line in lines]
    made = {name: number for number, (names, sign, _) in enumerate(assigned) if sign for name in _NAME.findall(names)}
    early: set[int] = set()
    waiting = [number for number, line in enumerate(lines) if _LOAD.match(line)]
    while waiting:
        number = waiting.pop()
        if number not in early:
            early.add(number)
            waiting += [made[name] for name in _NAME.findall(assigned[number][2]) if name in made]
    rest = [line for number, line in enumerate(lines) if number not in early]
    return [*(lines[number] for number in sorted(early)), *rest]
