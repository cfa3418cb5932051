"""Would other schedules of the same kernels be faster in the whole graph than those that won alone?

Alone, a kernel finds its operands in L2 and has the GPU to itself; in the graph it shares both with its neighbours, and
weights come from memory. So each kernel's closest runners-up take its place in the assembled graph, the costliest
kernel first: they are timed in turns with the graph as it is, and what is faster beyond the noise stays. The journal
keeps each comparison, so that a run that comes to the same graphs again launches nothing.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace

from engine.codegen import acf_of
from engine.events import ComparedInPlace
from engine.ir.graph import Graph
from engine.ir.json_form import grouping_to_json
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure import ComparesGraphs, PairedTimes, Schedules, differences
from engine.tune.control import Stopped
from engine.tune.corners import corners_of
from engine.tune.finalists import numbers_of
from engine.tune.settings import Objective
from engine.tune.workbench import Workbench
from engine.vocabulary import Schedule, Verdict

RUNNERS_UP = 3
"""A kernel; each costs its compile, a graph and its windows."""
WITHIN = 0.10
"""Runners-up are at most this share slower alone: by about so much do sums and assembled graphs disagree."""
PIPELINE = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "LOADS", "PERSISTENT", "ROWS", "COLUMNS", "BLOCK", "NUM_STAGES")
"""What decides how a kernel streams its operands. Runners-up that differ in it go before those that differ in the rest:
in a Qwen3 layer on an H200 nearly all of a gain of 5 % in place came from such ones."""


@dataclass(frozen=True, slots=True)
class Whole:
    """What is put together: `name` is the grouping's in this run, `program` what it is checked against."""

    name: str
    grouping: Grouping
    program: Graph | None
    pdl: bool


def refine(bench: Workbench, whole: Whole, schedules: Schedules) -> dict[str, Schedule]:
    """The schedules that the graph is fastest with; at most `settings.in_place` others are tried. Raises Stopped."""
    best = dict(schedules)
    left = bench.settings.in_place if bench.settings.objective is Objective.TIME else 0
    counts = whole.grouping.kernel_counts().values()
    for kernel, _ in sorted(counts, key=lambda item: -_cost(bench, item[0], schedules) * item[1]):
        chosen = best.get(kernel.key)
        others = _runners_up(bench, kernel, chosen)[:left] if chosen is not None else []
        if chosen is not None and others:
            left -= len(others)
            best[kernel.key] = _fastest(bench, whole, best, kernel, [chosen, *others])
    return best


def _cost(bench: Workbench, kernel: Kernel, schedules: Schedules) -> float:
    """What one launch adds to the sum, in us; nothing where the kernel has no schedule."""
    schedule = schedules.get(kernel.key)
    return bench.recorder.timed(kernel).get(schedule, 0.0) if schedule is not None else 0.0


def _runners_up(bench: Workbench, kernel: Kernel, chosen: Schedule) -> list[Schedule]:
    """The fastest alone but the chosen one, of each way to stream operands one before a second of any; equal times in
    the canonical order of their knobs. ptxas controls but the chosen one's have to prove themselves first."""
    timed = bench.recorder.timed(kernel)
    bound = timed.get(chosen, 0.0) * (1.0 + WITHIN)
    corners = corners_of(bench.forbidden, kernel)
    near = sorted(
        (us, schedule.key, schedule)
        for schedule, us in timed.items()
        if schedule != chosen
        and us <= bound
        and acf_of(schedule) in ("", acf_of(chosen))
        and not any(corner.holds(schedule.as_dict()) for corner in corners)
    )
    seen = {_pipeline(chosen)}
    first: list[Schedule] = []
    rest: list[Schedule] = []
    for _, _, schedule in near:
        (rest if _pipeline(schedule) in seen else first).append(schedule)
        seen.add(_pipeline(schedule))
    return (first + rest)[:RUNNERS_UP]


def _pipeline(schedule: Schedule) -> tuple[object, ...]:
    knobs = schedule.as_dict()
    return tuple(knobs.get(name) for name in PIPELINE)


def _fastest(
    bench: Workbench, whole: Whole, schedules: Schedules, kernel: Kernel, choices: Sequence[Schedule]
) -> Schedule:
    """That of the choices with which the graph is fastest: the first, unless another one is so beyond the noise."""
    bench.checkpoint()
    graphs = [{**schedules, kernel.key: choice} for choice in choices]
    name = _name(whole, graphs)
    known = bench.recorder.compared_in_place(name)
    event = replace(known, cached=True, grouping=whole.name) if known else _timed(bench, whole, kernel, graphs, name)
    if event is None:
        return choices[0]
    bench.tell_event(replace(event, at=time.time()))
    if not event.reason:
        return Schedule.from_key(event.kept)
    if len(choices) == 2:
        return choices[0]
    best = choices[0]
    for other in choices[1:]:
        best = _fastest(bench, whole, schedules, kernel, [best, other])
    return best


def _name(whole: Whole, graphs: Sequence[Schedules]) -> str:
    """24 hex digits: equal for the same graphs in the same order, in any process."""
    keys = [sorted((key, schedule.key) for key, schedule in graph.items()) for graph in graphs]
    text = json.dumps([grouping_to_json(whole.grouping), keys, whole.pdl])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _timed(
    bench: Workbench, whole: Whole, kernel: Kernel, graphs: Sequence[Schedules], name: str
) -> ComparedInPlace | None:
    """The graphs in turns; None at a device that can't time them."""
    times = _in_turns(bench, whole, graphs)
    schedules = tuple(graph[kernel.key].key for graph in graphs)
    event = ComparedInPlace(
        at=0.0,
        grouping=whole.name,
        kernel=kernel.key,
        graphs=name,
        schedules=schedules,
        kept=schedules[0],
        pdl=whole.pdl,
    )
    if times.failure is not None:
        return replace(event, reason=f"{times.failure.kind}: {times.failure.cause}")
    if not times.windows:
        return None
    share = bench.noise_share()
    found = differences([times.windows], share)
    faster = [(item.ratio, at) for at, item in enumerate(found, start=1) if item.verdict is Verdict.FASTER]
    return replace(
        event,
        kept=schedules[min(faster)[1]] if faster else schedules[0],
        medians_us=tuple(statistics.median(windows) for windows in times.windows),
        noise_share=share,
        **numbers_of(found),
    )


def _in_turns(bench: Workbench, whole: Whole, graphs: Sequence[Schedules]) -> PairedTimes:
    if not isinstance(bench.device, ComparesGraphs):
        return PairedTimes()
    try:
        bench.measuring.set()
        return bench.device.compare_graphs(whole.grouping, graphs, whole.program, pdl=whole.pdl)
    except CancelledError:
        raise Stopped from None
