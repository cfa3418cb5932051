"""Equal layers of a graph, and the same graph with fewer of them.

A model of 28 equal layers asks what one of five asks, because equal sites share an answer. Walking the short graph in
its place makes an outer search of a whole model as cheap as one of a few layers; only what is entered is written out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph, Op

_BEFORE, _BEHIND = 1, 2
"""Periods kept before and behind those left out: every site then lies between neighbours as it does in the whole."""
_PERIODS_TRIED = 8


@dataclass(frozen=True, slots=True)
class _Run:
    """Ops `start` to `stop` of a line, each equal to the one `period` before it and reading what that one reads."""

    start: int
    stop: int
    period: int

    @property
    def left_out(self) -> int:
        """How many places of the line a shorter graph leaves out: whole periods."""
        return max((self.stop - self.start) // self.period - _BEFORE - _BEHIND, 0) * self.period


@dataclass(frozen=True, slots=True)
class Shortened:
    """A graph with `kept` layers' worth of ops, and `left_out` equal layers less than the whole."""

    graph: Graph
    kept: int
    left_out: int


def shortened(graph: Graph) -> Shortened | None:
    """The graph with so few of its equal layers that each kind of place in it is still there; None if it has too few
    to leave one out."""
    line = [index for index, op in enumerate(graph.ops) if op.kind != "input"]
    place = {index: number for number, index in enumerate(line)}
    run = _longest_run(graph, line, place)
    if run is None or not run.left_out or not _is_closed(graph, line, place, run):
        return None
    first = run.start + _BEFORE * run.period
    gone = range(first, first + run.left_out)
    builder = GraphBuilder()
    where: dict[int, int] = {}
    kept = [index for number, index in enumerate(line) if number not in gone]

    def now(index: int) -> int:
        """Where a value of the whole graph is in the short one: of a place left out, so many periods before."""
        number = place.get(index, -1)
        return where[line[number - run.left_out] if number in gone else index]

    _copy_inputs(graph, builder, where, kept)
    for index in kept:
        op = graph.ops[index]
        where[index] = builder.append(Op(op.kind, tuple(now(i) for i in op.inputs), op.out, op.attributes))
    short = builder.built(*(now(i) for i in graph.outputs))
    return Shortened(short, round(len(kept) / run.period), run.left_out // run.period)


def _copy_inputs(graph: Graph, builder: GraphBuilder, where: dict[int, int], kept: Sequence[int]) -> None:
    """The inputs that one of the ops `kept` reads, or that is returned."""
    read = {i for index in kept for i in graph.ops[index].inputs}.union(graph.outputs)
    labels = graph.labels or ("",) * len(graph.inputs)
    for position, index in enumerate(graph.inputs):
        if index in read:
            where[index] = builder.input(graph.ops[index].out, labels[position], position in graph.weights)


def _longest_run(graph: Graph, line: list[int], place: dict[int, int]) -> _Run | None:
    """The run that lets most be left out, of the distances at which equal matmuls, or other equal ops, come again."""
    words = [_word(graph, index) for index in line]
    weights = frozenset(graph.inputs[position] for position in graph.weights)
    last: dict[tuple[object, ...], int] = {}
    distances: Counter[int] = Counter()
    for number, word in enumerate(words):
        if word in last:
            distances[number - last[word]] += 1
        last[word] = number
    runs = []
    for period, _ in distances.most_common(_PERIODS_TRIED):
        start = None
        for number in range(len(line) - period + 1):
            repeats = number < len(line) - period and words[number] == words[number + period]
            if repeats and _reads_alike(graph, place, weights, (line[number], line[number + period]), period):
                start = number if start is None else start
            elif start is not None:
                runs.append(_Run(start, number + period, period))
                start = None
    return max(runs, key=lambda run: run.left_out, default=None)


def _word(graph: Graph, index: int) -> tuple[object, ...]:
    op = graph.ops[index]
    return op.kind, op.out, repr(op.attributes), tuple(graph.ops[i].out for i in op.inputs)


def _reads_alike(
    graph: Graph, place: dict[int, int], weights: frozenset[int], pair: tuple[int, int], period: int
) -> bool:
    """Whether two ops read the same, or what lies one period apart, or inputs of their own, both weights or neither."""
    for first, second in zip(*(graph.ops[index].inputs for index in pair), strict=True):
        if first == second:
            continue
        if first in place and second in place:
            if place[second] - place[first] != period:
                return False
        elif first in place or second in place or (first in weights) != (second in weights):
            return False
    return True


def _is_closed(graph: Graph, line: list[int], place: dict[int, int], run: _Run) -> bool:
    """Whether what follows the periods that are left out reads none of them but, in the run, the last one."""
    first = run.start + _BEFORE * run.period
    after = first + run.left_out
    readers = [(number, i) for number, index in enumerate(line) for i in graph.ops[index].inputs]
    readers += [(len(line), i) for i in graph.outputs]
    for number, index in readers:
        source = place.get(index, -1)
        if first <= source < after <= number and not (number < run.stop and number - source <= _BEFORE * run.period):
            return False
    return True
