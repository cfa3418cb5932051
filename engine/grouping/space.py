"""The tree of structural forks of one graph: what the outer search walks, and the grouping at the end of a path."""

from __future__ import annotations

from dataclasses import dataclass

from engine.grouping.assembly import assemble_plan
from engine.grouping.partition import Facts, Partition
from engine.grouping.pieces import merge_pointwise, start_partition
from engine.grouping.rowwise import reduction_chains
from engine.grouping.rules import RULES
from engine.grouping.site import APART, Rule, Site
from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph
from engine.ir.plan import Grouping
from engine.ir.shapes import GraphError
from engine.ir.verify import verify
from engine.vocabulary import Fork, Option

Path = tuple[Option, ...]
_REMEMBERED = 512
"""Paths kept; a descent asks for each prefix of a path, and a prefix extends its parent."""


@dataclass(frozen=True, slots=True)
class _Question:
    rule: Rule
    site: Site
    knob: str


@dataclass(frozen=True, slots=True)
class _State:
    """After some decisions: the partition so far, the position of the open question (the number of questions at the
    end), and the decisions by knob."""

    partition: Partition
    position: int
    decisions: dict[str, str]
    fused: Partition | None


def grouping_space(graph: Graph) -> GroupingSpace:
    """The structural forks of a graph. Raises GraphError when the graph is not a verified one."""
    return GroupingSpace(graph)


class GroupingSpace:
    """`fork(path)` asks the next structural question, `grouping(path)` is the plan of a finished path.

    Sites with equal context share a knob: the first one decides, the others follow where that is legal for them.
    """

    def __init__(self, graph: Graph) -> None:
        facts = Facts.of(_without_dead_ops(verify(graph)))
        start = start_partition(facts, reduction_chains(facts))
        self._questions = _questions(start)
        self._states: dict[Path, _State] = {(): self._advance(start, 0, {})}

    def fork(self, path: Path) -> Fork | None:
        """The question after `path`, or None when all is decided. Raises GraphError for a path of another space."""
        state = self._state(path)
        if state.fused is None:
            return None
        question = self._questions[state.position]
        return Fork(question.knob, tuple(Option(((question.knob, answer),)) for answer in question.rule.answers))

    def grouping(self, path: Path) -> Grouping:
        """The plan at the end of a path. Raises GraphError when questions are open after it."""
        state = self._state(path)
        if state.fused is not None:
            raise GraphError(f"the path leaves {self._questions[state.position].knob} open")
        return assemble_plan(merge_pointwise(state.partition, {}), path)

    def _state(self, path: Path) -> _State:
        known = self._states.get(path)
        if known is not None:
            return known
        before = self._state(path[:-1])
        fork = self.fork(path[:-1])
        if fork is None or path[-1] not in fork.options:
            raise GraphError(f"{path[-1]} answers no question of this graph")
        ((knob, value),) = path[-1].knobs
        chosen = before.fused if value != APART and before.fused is not None else self._apart(before)
        state = self._advance(chosen, before.position + 1, {**before.decisions, knob: str(value)})
        if len(self._states) >= _REMEMBERED:
            self._states = {(): self._states[()]}
        self._states[path] = state
        return state

    def _apart(self, state: _State) -> Partition:
        question = self._questions[state.position]
        return question.rule.apart(state.partition, question.site)

    def _advance(self, partition: Partition, position: int, decisions: dict[str, str]) -> _State:
        """Follow earlier decisions at equal sites until a question is open."""
        for number in range(position, len(self._questions)):
            question = self._questions[number]
            decided = decisions.get(question.knob)
            fused = question.rule.fused(partition, question.site)
            if fused is None:
                continue
            if decided is None:
                return _State(partition, number, decisions, fused)
            partition = fused if decided != APART else question.rule.apart(partition, question.site)
        return _State(partition, len(self._questions), decisions, None)


def _questions(start: Partition) -> tuple[_Question, ...]:
    found: list[_Question] = []
    for rule in RULES:
        numbers: dict[str, int] = {}
        for site in rule.sites(start):
            number = numbers.setdefault(site.context, len(numbers))
            found.append(_Question(rule, site, f"{rule.knob}_{number}"))
    return tuple(found)


def _without_dead_ops(graph: Graph) -> Graph:
    """The graph without ops that no output needs; an output that is a constant becomes a copy of it."""
    builder = GraphBuilder()
    labels = graph.labels or ("",) * len(graph.inputs)
    where: dict[int, int] = {}
    for index, op in enumerate(graph.ops):
        if op.kind == "input":
            where[index] = builder.input(op.out, labels[graph.inputs.index(index)])
        else:
            where[index] = builder.append(type(op)(op.kind, tuple(where[i] for i in op.inputs), op.out, op.attributes))
    outputs = [
        builder.add("copy", where[i], dtype=graph.ops[i].out.dtype) if graph.ops[i].kind == "constant" else where[i]
        for i in graph.outputs
    ]
    return builder.build(*outputs)
