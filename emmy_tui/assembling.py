"""The machine code of one variant: compiled when a person asks, in a process of its own, and counted by instruction.

The screen itself never imports a compiler. Without one, or without a disassembler, it says in one line what is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec

from emmy_tui import format as fmt
from emmy_tui.knob_words import long_words
from emmy_tui.text import Glyphs, Line, Tone, clean, fold, left, right, wrap
from emmy_tui.variant_detail import LABEL, rendered_source
from engine.codegen import KernelSource
from engine.deploy import Listed, compiled_kernels, ptx_instructions, sass_instructions
from engine.extras import install_text
from engine.ir import GraphError
from engine.ir.kernel import Kernel
from engine.store import Candidate, Store, StoreError
from engine.vocabulary import Schedule, Target

COUNT, KIND = 7, 24
_COMPILER = ("torch", "triton")


class NothingToCompile(Exception):
    """There is no text that a compiler could be given; the text is one sentence."""


def missing_compiler() -> str:
    """What is missing to compile a kernel here, in one sentence; "" where all is there."""
    missing = [name for name in _COMPILER if find_spec(name) is None]
    if not missing:
        return ""
    return f"PTX and SASS need {' and '.join(missing)}, not installed here: {install_text('tune')}"


def read_compilable(row: Candidate) -> Callable[[Store], tuple[Listed, Target]]:
    """The question that a desk answers: the row's kernel as text, and the chip that it was measured on."""

    def question(store: Store) -> tuple[Listed, Target]:
        try:
            kernel, target = store.kernel(row.kernel), store.target(row.context)
        except GraphError as error:
            raise StoreError(str(error)) from None
        schedule = Schedule.of(row.schedule)
        return Listed(kernel, schedule, _source(kernel, schedule, target)), target

    return question


def _source(kernel: Kernel, schedule: Schedule, target: Target) -> KernelSource:
    source, why_none = rendered_source(kernel, schedule, target)
    if source is None:
        raise StoreError(why_none)
    return source


def compiled(listed: Listed, target: Target) -> Listed:
    """The same with PTX, SASS and sizes; takes seconds. Raises NothingToCompile, and ChildError of the process."""
    if missing := missing_compiler():
        raise NothingToCompile(missing)
    (found,) = compiled_kernels([listed], target, sass=True)
    if found.failure:
        raise NothingToCompile(found.failure)
    return found


def assembly_lines(found: Listed, target: Target, width: int, glyphs: Glyphs) -> list[Line]:
    """Sizes, instructions by kind, then both texts."""
    knobs = clean(long_words(found.schedule.as_dict()), glyphs)
    lines: list[Line] = [[(text, Tone.HEAD)] for text in wrap(knobs, width)]
    lines.append([])
    chip = f"sm_{target.capability}"
    for label, value in (
        ("compiled for", f"{chip}, here and now"),
        ("registers", found.registers),
        ("spills", None if found.spills is None else f"{found.spills} bytes"),
        ("shared memory", None if found.shared_bytes is None else f"{found.shared_bytes} bytes"),
        ("code", None if found.code_bytes is None else f"{found.code_bytes} bytes"),
    ):
        lines.append([(left(label, LABEL), Tone.DIM), ("-" if value is None else str(value), Tone.PLAIN)])
    ptx, sass = ptx_instructions(found.ptx), sass_instructions(found.sass)
    lines += [[], *_columns(ptx, sass, width, glyphs)]
    if not found.sass:
        lines += [[], [("SASS needs cuobjdump or nvdisasm, which come with Triton or a CUDA toolkit", Tone.BUSY)]]
    for name, text in (("PTX", found.ptx), ("SASS", found.sass)):
        if text:
            lines += [[], [(name, Tone.HEAD)]]
            lines += [
                [(row, Tone.PLAIN)]
                for line in text.splitlines()
                for row in fold(clean(line.expandtabs(4).rstrip(), glyphs), max(1, width))
            ]
    return lines


def _columns(ptx: Counter[str], sass: Counter[str], width: int, glyphs: Glyphs) -> list[Line]:
    """Both side by side, the most frequent first."""
    cell = min(KIND, max(8, (width - 2 * (COUNT + 3)) // 2))
    gap = " " * 3
    heads = [
        left(f"{name} instructions" if cell >= KIND else name, cell + 1)
        + right(fmt.count(counts.total()) if counts else "-", COUNT)
        for name, counts in (("PTX", ptx), ("SASS", sass))
    ]
    lines: list[Line] = [[(gap.join(heads), Tone.HEAD)]]
    rows = [[_kind(one, cell, glyphs) for one in counts.most_common()] for counts in (ptx, sass)]
    blank = " " * (cell + 1 + COUNT)
    for place in range(max(len(column) for column in rows)):
        cells = [column[place] if place < len(column) else blank for column in rows]
        lines.append([(gap.join(cells), Tone.PLAIN)])
    return lines


def _kind(one: tuple[str, int], cell: int, glyphs: Glyphs) -> str:
    kind, number = one
    return left(clean(kind, glyphs), cell, glyphs) + " " + right(fmt.count(number), COUNT)
