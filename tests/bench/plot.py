"""Progress of searches as a plain SVG: median slowdown over the best against evaluations, one panel a landscape."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from statistics import median

from tests.bench.landscape import Landscape

WIDTH, HEIGHT, LEFT, TOP, GAP = 460, 260, 56, 34, 36
COLOURS = ("#d62728", "#ff9896", "#8c2d04", "#1f77b4", "#7f7f7f", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#bcbd22")
COLUMNS = 3
"""Panels side by side."""
SHOWN = (0.1, 1.0, 10.0, 100.0)
"""Per cent above the best at which a line is drawn; the scale is logarithmic."""

Curves = Mapping[str, Sequence[Sequence[float]]]


def progress_svg(panels: Mapping[Landscape, Curves], budget: int) -> str:
    """`panels` hold each strategy's best-so-far times in us, one sequence a seed."""
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    colour = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    columns = min(COLUMNS, max(len(panels), 1))
    width, rows = columns * (LEFT + WIDTH + GAP), -(-len(panels) // columns)
    height = TOP + rows * (HEIGHT + GAP) + GAP
    body = []
    for place, (land, curves) in enumerate(panels.items()):
        x, y = place % columns * (LEFT + WIDTH + GAP), place // columns * (HEIGHT + GAP)
        body.append(f'<g transform="translate({x} {y})">\n{_panel(land, curves, colour, budget)}\n</g>')
    for place, name in enumerate(names):
        x, y = LEFT + place * (width - LEFT) // max(len(names), 1), height - GAP // 2
        body.append(f'<path d="M {x} {y} h 18" stroke="{colour[name]}" stroke-width="2"/>')
        body.append(f'<text x="{x + 24}" y="{y + 4}">{escape(name)}</text>')
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    style = 'font-family="sans-serif" font-size="11" fill="#333"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{paper}\n' + "\n".join(body) + "\n</svg>\n"


def _panel(land: Landscape, curves: Curves, colour: Mapping[str, str], budget: int) -> str:
    top = TOP
    parts = [f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{escape(land.name)}</text>']
    for percent in SHOWN:
        y = top + _height(percent)
        parts.append(f'<path d="M {LEFT} {y:.1f} h {WIDTH}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">+{percent:g} %</text>')
    for spent in range(0, budget + 1, max(budget // 4, 1)):
        x = LEFT + WIDTH * spent / budget
        parts.append(f'<text x="{x:.1f}" y="{top + HEIGHT + 14}" text-anchor="middle">{spent}</text>')
    for name, runs in curves.items():
        points = " ".join(f"{x:.1f},{top + y:.1f}" for x, y in _points(land.best, runs, budget))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour[name]}" stroke-width="1.6"/>')
    return "\n".join(parts)


def _points(best: float, runs: Sequence[Sequence[float]], budget: int) -> list[tuple[float, float]]:
    found = []
    for spent in range(1, budget + 1):
        slowdown = median(100 * (run[min(spent, len(run)) - 1] / best - 1) if run else math.inf for run in runs)
        if math.isfinite(slowdown):
            found.append((LEFT + WIDTH * spent / budget, _height(slowdown)))
    ends = {0, len(found) - 1}
    return [
        point
        for place, point in enumerate(found)
        if place in ends or not found[place - 1][1] == point[1] == found[place + 1][1]
    ]


def _height(percent: float) -> float:
    """Down from the panel's top: 100 % and more at the top, 0.1 % and less at the bottom."""
    low, high = math.log10(SHOWN[0]), math.log10(SHOWN[-1])
    return HEIGHT * (high - math.log10(min(max(percent, SHOWN[0]), SHOWN[-1]))) / (high - low)
