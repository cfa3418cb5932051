"""`emmy eval kernels`: each kernel's best time, how far from what the GPU can do, and whether ranking misled."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache

import typer

from engine.cli.database import chosen_database, opened
from engine.cli.errors import refuse_unmatched
from engine.cli.options import Database, Demo, Json, KernelText
from engine.cli.output import fitting_columns, json_text, rows_of, table_lines, terminal_width, text_lines
from engine.ir.roofline import MEMORY, floor_us
from engine.measure import Fidelity, fidelity
from engine.store import KernelVariants, Store
from engine.tune import pairs_of_kinds

PairsOf = Callable[[str], Mapping[str, Sequence[tuple[float, float]]]]
"""The pairs of times of a context's kernels, as `Store.regime_pairs` gives them."""

YIELDING = ("regret", "spearman", "pairs", "floor_us", "regime", "shape")
"""Columns that give way on a narrow terminal, the least missed first."""


@dataclass(frozen=True, slots=True)
class KernelLine:
    """Times in us. `over_floor` is the best time over the floor; None where the GPU's ceilings were not measured.

    `spearman` and `regret` (a share) compare the order of ranking times with that of deploy times, over `pairs`.
    """

    kernel: str
    label: str
    shape: str
    best_us: float | None
    regime: str
    over_floor: float | None
    floor_us: float | None
    bound: str
    pairs: int
    spearman: float | None
    regret: float | None
    gpu: str
    context: str
    at_copy_rate: bool
    """Whether the floor counts reads at the rate of a copy, as no rate of reading was measured."""


def kernels(kernel: KernelText = "", database: Database = None, demo: Demo = False, json: Json = False) -> None:
    """Show each kernel's best time in us, how many times the floor of the GPU that is, and what bounds it.

    Under it: by kind of kernel, whether the ranking regime orders candidates as the deploy regime does. A kind that is
    misleading is ranked by deploy times in the next run. With --json the lines of kernels alone.

    A --kernel that nothing matches is bad input: exit code 2, a sentence on stderr, and [] as JSON.
    """
    path = chosen_database(database, demo)
    with opened(path) as store:
        pairs_of = cache(store.regime_pairs)  # one reading of a context serves each of its kernels
        found = [_line(store, one, pairs_of) for one in store.variants(kernel, 1)]
        lines = [line for line in found if line is not None]
        kinds = _kinds(store) if not kernel else []
    if json:
        typer.echo(json_text([asdict(line) for line in lines]))
    elif lines or not kernel:
        width = terminal_width(sys.stdout)
        told = [*_table(lines, width), *_without_floor(lines, width), *_beaten(lines, width)]
        told += _kind_table(kinds, width)
        typer.echo("\n".join(told) or f"{path} holds no measurement yet")
    if not found and kernel:
        raise refuse_unmatched("measured kernel", "--kernel", kernel, path)


def _line(store: Store, one: KernelVariants, pairs_of: PairsOf) -> KernelLine | None:
    """None for a kernel whose body can't be read: the store leaves it out."""
    ceilings = store.ceilings(one.context)
    body = store.readable_kernel(one.kernel)
    if body is None:
        return None
    floor, bound = floor_us(body, ceilings) if ceilings is not None else (None, "")
    best = one.rows[0] if one.rows else None
    best_us = best.best_us if best is not None else None
    pairs = pairs_of(one.context).get(one.kernel, [])
    found = fidelity([pairs])
    return KernelLine(
        kernel=one.kernel,
        label=one.label or one.family,
        shape=one.shape,
        best_us=best_us,
        regime=str(best.regime) if best is not None and best.regime is not None else "",
        over_floor=best_us / floor if best_us is not None and floor else None,
        floor_us=floor,
        bound=bound,
        pairs=len(pairs),
        spearman=found.spearman if found else None,
        regret=found.regret if found else None,
        gpu=one.gpu,
        context=one.context,
        at_copy_rate=ceilings is not None and not ceilings.read_gbs > 0,
    )


def _kinds(store: Store) -> list[tuple[str, str, Fidelity]]:
    """The GPU, the kind and how its pairs rank, context by context."""
    found = [
        (context.gpu, kind, fidelity(pairs))
        for context in store.contexts()
        for kind, pairs in sorted(pairs_of_kinds(store, context.key).items())
    ]
    return [(gpu, kind, one) for gpu, kind, one in found if one is not None]


def _table(lines: Sequence[KernelLine], width: int | None) -> list[str]:
    if not lines:
        return []
    names = ["label", "shape", "best_us", "regime", "over_floor", "floor_us", "bound", "pairs", "spearman", "regret"]
    columns = {name: [_cell(line, name) for line in lines] for name in names}
    kept = fitting_columns(columns, YIELDING, width)
    return table_lines(list(kept), rows_of(kept), width)


def _without_floor(lines: Sequence[KernelLine], width: int | None) -> list[str]:
    """Why some lines have no floor; none where each has one."""
    gpus = dict.fromkeys(line.gpu or line.context for line in lines if line.floor_us is None)
    if not gpus:
        return []
    where = ", ".join(gpus)
    return text_lines(
        f"no floor: no recorded run measured what {where} reaches (memory, products), as `emmy tune` on it does", width
    )


def _beaten(lines: Sequence[KernelLine], width: int | None) -> list[str]:
    """What a time below its floor means: the GPU does more than the run measured that it does."""
    beaten = [line for line in lines if line.over_floor is not None and line.over_floor < 1]
    told = {
        "the floor is at the rate of a copy, as the run measured no rate of reading, and what mostly reads is faster"
        if line.bound == MEMORY and line.at_copy_rate
        else "the GPU did more than the run had measured that it reaches"
        for line in beaten
    }
    return [line for cause in sorted(told) for line in text_lines(f"below 1.00x: {cause}", width)]


def _cell(line: KernelLine, name: str) -> object:
    value: object = getattr(line, name)
    if name == "over_floor" and isinstance(value, float):
        return f"{value:.2f}x"
    if name in ("spearman", "regret") and isinstance(value, float):
        return f"{value:.3f}"
    return value


def _kind_table(kinds: Sequence[tuple[str, str, Fidelity]], width: int | None) -> list[str]:
    if not kinds:
        return []
    columns = ["kind", "kernels", "pairs", "spearman", "regret", "ranking"]
    cells: list[list[object]] = [
        [kind, one.kernels, one.pairs, f"{one.spearman:.3f}", f"{one.regret:.3f}", "misleads" if one.bad else "holds"]
        for _, kind, one in kinds
    ]
    if len({gpu for gpu, _, _ in kinds}) > 1:
        columns, cells = [*columns, "gpu"], [[*row, gpu] for row, (gpu, _, _) in zip(cells, kinds, strict=True)]
    return ["", *table_lines(columns, cells, width)]
