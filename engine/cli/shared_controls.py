"""One controls file for several shapes of a kernel: the one that helps them most together, told shape by shape.

It is read from what each shape's own search measured. A file that failed on one of the shapes is out, whatever it does
on the others; and where a comparison in turns confirmed no win for a shape, that is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.cli.eval_acf_rows import ControlsReport, ControlsRow


@dataclass(frozen=True, slots=True)
class SharedControls:
    """`ratio` is the geometric mean over the shapes of the best time without controls over the best with this file.

    `confirmed` counts the shapes in which it won by a comparison in turns.
    """

    label: str
    gpu: str
    ptxas: str
    sha256: str
    name: str
    ratio: float
    confirmed: int
    shapes: tuple[tuple[str, float], ...]


def shared_controls(reports: Sequence[ControlsReport]) -> list[SharedControls]:
    """The best common file of each kernel that has several shapes on one GPU, assembled by one ptxas."""
    groups: dict[tuple[str, str, str], list[ControlsReport]] = {}
    for report in reports:
        groups.setdefault((report.label, report.gpu, report.ptxas), []).append(report)
    found = [_best(group) for group in groups.values() if len({report.kernel for report in group}) > 1]
    return [one for one in found if one is not None]


def _best(group: Sequence[ControlsReport]) -> SharedControls | None:
    usable = [{row.sha256: row for row in report.rows if _is_sound(row)} for report in group]
    common = set(usable[0]).intersection(*usable[1:])
    best: SharedControls | None = None
    for sha256 in sorted(common):
        rows = [of_shape[sha256] for of_shape in usable]
        ratios = [row.ratio or 1.0 for row in rows]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        if best is None or mean > best.ratio:
            shapes = tuple((report.shape, ratio) for report, ratio in zip(group, ratios, strict=True))
            confirmed = sum(row.verdict == "faster" for row in rows)
            about = (group[0].label, group[0].gpu, group[0].ptxas)
            best = SharedControls(*about, sha256, rows[0].name, mean, confirmed, shapes)
    return best


def _is_sound(row: ControlsRow) -> bool:
    return bool(row.sha256) and row.ratio is not None and row.failed == 0


def shared_sentence(one: SharedControls) -> str:
    """What a person should know of it, shape by shape."""
    each = ", ".join(f"{shape} {ratio:.3f}x" for shape, ratio in one.shapes)
    return (
        f"one file for all {len(one.shapes)} shapes of {one.label}: {one.name}, {one.ratio:.3f}x the best without "
        f"({each}); confirmed as a win in {one.confirmed} of them"
    )
