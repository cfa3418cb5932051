"""Programmatic dependent launch: a kernel starts while the one before it still ends, and waits inside for its results.

Two lines make a kernel fit for it. `gdc_wait` stands before the first access to memory, so that nothing is read that
the kernel before has still to write, and nothing written that it still reads. It waits until that kernel has ended as a
whole, and every kernel of a chain waits, so that whatever came earlier has ended too. `gdc_launch_dependents` stands
behind the main loop: earlier, the blocks of the next kernel would take the room that this one's still need.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.codegen.source import GLUON, KernelSource

WAIT = "tl.extra.cuda.gdc_wait()"
LAUNCH_DEPENDENTS = "tl.extra.cuda.gdc_launch_dependents()"

_READS = re.compile(r"\btl\.load\(|\.load\(\[")
_WRITES = re.compile(r"\btl\.store\(|\btl\.atomic_|\.store\(\[")
_ACCESSES = re.compile(f"{_READS.pattern}|{_WRITES.pattern}")


@dataclass(frozen=True, slots=True)
class _Statement:
    """Lines of one statement of the function's outermost level, from line `start` on."""

    start: int
    text: str
    calls: bool = False
    """Whether it calls functions that access memory."""

    @property
    def is_loop(self) -> bool:
        return self.text.lstrip().startswith("for ")

    @property
    def reads(self) -> bool:
        return _READS.search(self.text) is not None

    @property
    def writes(self) -> bool:
        return _WRITES.search(self.text) is not None


def with_dependent_launch(source: KernelSource) -> KernelSource:
    """The source with the two lines, to be launched that way; its results are the same. Others stay untouched.

    A text in Gluon stays as it is: launched plainly, it starts when all before it has ended.
    """
    if source.dialect == GLUON:
        return source
    lines = source.text.rstrip("\n").split("\n")
    called, working = _working_functions(lines, source.entry)
    for body, end in reversed(working):
        statements = [_called(statement, called) for statement in _statements(lines[:end], body)]
        first = next((s.start for s in statements if s.reads or s.writes or s.calls), body)
        last = max(_behind_main_loop(statements, end), first)
        lines[last:last] = [f"    {LAUNCH_DEPENDENTS}"]
        lines[first:first] = [f"    {WAIT}"]
    return replace(source, text="\n".join([*lines, ""]), pdl=True)


def _working_functions(lines: Sequence[str], entry: str) -> tuple[list[str], list[tuple[int, int]]]:
    """The names of the functions besides the entry that access memory, and the first line and end of those to change.

    Those are the entry, or, where it accesses nothing itself, all that it calls one of. So every program comes through
    one of them.
    """
    starts = [i for i, line in enumerate(lines) if line.startswith("def ")]
    called: list[str] = []
    places: list[tuple[int, int]] = []
    for start, after in zip(starts, [*starts[1:], len(lines)], strict=True):
        end = next((i for i in range(start + 1, after) if not lines[i].strip()), after)
        accesses = re.search(_ACCESSES, "\n".join(lines[start:end])) is not None
        if lines[start].startswith(f"def {entry}("):
            if accesses or not called:
                places = [(start + 1, end)]
        elif accesses:
            called.append(lines[start].removeprefix("def ").partition("(")[0])
            places.append((start + 1, end))
    return called, places


def _called(statement: _Statement, functions: Sequence[str]) -> _Statement:
    return replace(statement, calls=any(re.search(rf"\b{name}\(", statement.text) for name in functions))


def _behind_main_loop(statements: Sequence[_Statement], end: int) -> int:
    """The line behind the last loop that only reads; without one, the first that writes; else the function's end."""
    for number, statement in enumerate(statements):
        if not (statement.writes or statement.calls):
            continue
        loops = [place for place in range(number) if statements[place].is_loop and statements[place].reads]
        if loops:
            return statements[loops[-1] + 1].start
        return end if statement.reads else statement.start
    return end


def _statements(lines: Sequence[str], body: int) -> list[_Statement]:
    """The function's outermost statements; what is indented deeper, or closes a bracket, belongs to the one above."""
    starts = [i for i in range(body, len(lines)) if re.match(r"    [^\s)\]}]", lines[i])]
    ends = [*starts[1:], len(lines)]
    return [_Statement(start, "\n".join(lines[start:end])) for start, end in zip(starts, ends, strict=True)]
