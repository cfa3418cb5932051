"""A kernel's variants as a table: what all shown rows agree on stands above it, and it fits the terminal.

On a narrow terminal the columns that matter least give way; a pipe gets them all.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.cli.knob_text import knob_word, names_in_order
from engine.cli.output import table_lines, table_width, text_lines
from engine.store import KernelVariants, VariantRow

FACTS = (
    *("rank", "best_us", "regime", "us", "low_us", "high_us", "deploy_us"),
    *("registers", "spills", "shared_bytes", "error", "failure"),
)
YIELDING = ("error", "spills", "low_us", "high_us", "shared_bytes", "registers", "deploy_us", "us", "failure")
"""Columns that give way on a narrow terminal, the least missed first."""
ACF_DIGITS = 12


def variant_lines(kernel: KernelVariants, width: int | None) -> list[str]:
    """Title, counts, the shared knobs, and the rows with the knobs that differ; `width` None cuts nothing."""
    names = names_in_order({name for row in kernel.rows for name in row.schedule})
    varying = [name for name in names if len({repr(row.schedule.get(name)) for row in kernel.rows}) > 1]
    shared = [knob_word(name, kernel.rows[0].schedule[name]) for name in names if name not in varying]
    title = f"{kernel.label or kernel.family} {kernel.shape} {kernel.kernel}"
    untimed = f", {kernel.untimed} with a time that can't be one" if kernel.untimed else ""
    texts = [title, f"{kernel.gpu}: {kernel.ok} ok, {kernel.failed} failed{untimed}"]
    texts += [f"all with {' '.join(shared)}"] if shared else []
    lines = [line for text in texts for line in text_lines(text, width)]
    return [*lines, *_table(kernel.rows, varying, width)]


def _table(rows: Sequence[VariantRow], knobs: Sequence[str], width: int | None) -> list[str]:
    facts = list(FACTS)
    if width is not None:
        facts = [name for name in FACTS if any(getattr(row, name) not in (None, "") for row in rows)]
    for yielded in range(len(YIELDING) + 1):
        columns, cells = _wide(rows, [name for name in facts if name not in YIELDING[:yielded]], knobs)
        if width is None or table_width(columns, cells) <= width:
            return table_lines(columns, cells, width)
    texts = [" ".join(knob_word(name, row.schedule[name]) for name in knobs if name in row.schedule) for row in rows]
    narrow = [[row.rank, row.best_us, row.regime, row.failure or text] for row, text in zip(rows, texts, strict=True)]
    named = ["rank", "best_us", "regime", "knobs"]
    if width is not None and table_width(named, narrow) > width:
        named, narrow = ["rank", "us", "knobs"], [[rank, us, text] for rank, us, _, text in narrow]
    return table_lines(named, narrow, width)


def _wide(
    rows: Sequence[VariantRow], facts: Sequence[str], knobs: Sequence[str]
) -> tuple[list[str], list[list[object]]]:
    cells = [[*(_fact(row, name) for name in facts), *(_knob(row, name) for name in knobs)] for row in rows]
    return [*facts, *knobs], cells


def _fact(row: VariantRow, name: str) -> object:
    if name == "error" and row.error is not None:
        return f"{row.error:.1e}"
    value: object = getattr(row, name)
    return value


def _knob(row: VariantRow, name: str) -> object:
    """A knob's value; of the sha256 of controls as much as tells files apart."""
    value = row.schedule.get(name)
    return str(value)[:ACF_DIGITS] if name == "ACF" and value is not None else value
