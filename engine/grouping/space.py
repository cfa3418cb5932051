"""The tree of structural forks of one graph: what the outer search walks, and the grouping at the end of a path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.grouping.assembly import assemble_plan
from engine.grouping.partition import Facts, Partition
from engine.grouping.pieces import merge_pointwise, start_partition
from engine.grouping.prepared import take_out_prepared
from engine.grouping.rebuilding import copied
from engine.grouping.repetition import Shortened, shortened
from engine.grouping.rewrites import REWRITES
from engine.grouping.rewriting import Rewriting
from engine.grouping.rowwise import reduction_chains
from engine.grouping.rules import RULES
from engine.grouping.site import APART, Rule, Site
from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping, Preparation
from engine.ir.shapes import GraphError
from engine.ir.verify import verify
from engine.vocabulary import Fork, Option

Path = tuple[Option, ...]
_FEWEST_REMEMBERED = 512
_OPS_REMEMBERED = 1_500_000
"""Paths kept are as many as hold so many ops together, some 100 MB: a search comes back to most of them, and each
extends its parent."""


@dataclass(frozen=True, slots=True)
class _Question:
    rule: Rule
    site: Site
    knob: str


@dataclass(frozen=True, slots=True)
class _State:
    """After all rewrites and some decisions: the questions of the graph and what is prepared for it, the partition so
    far, the position of the open question (the number of questions at the end), and the decisions by knob."""

    questions: tuple[_Question, ...]
    prepared: tuple[Preparation, ...]
    partition: Partition
    position: int
    decisions: dict[str, str]
    fused: Partition | None


Answers = Mapping[tuple[str, str], str]
"""What was decided, by the rule's or rewrite's knob and the context of the site: the same in graphs of other layers."""


def grouping_space(graph: Graph) -> GroupingSpace:
    """The structural forks of a graph. Raises GraphError when the graph is not a verified one."""
    whole = _without_dead_ops(verify(graph))
    short = shortened(whole)
    return GroupingSpace(whole) if short is None else RepeatedSpace(whole, short)


class GroupingSpace:
    """`fork(path)` asks the next structural question, `grouping(path)` is the plan of a finished path.

    Questions that change the graph come first, then those that divide it.
    Sites with equal context share a knob: the first one decides, the others follow where that is legal for them.
    """

    def __init__(self, graph: Graph) -> None:
        first = Rewriting.begun(graph, REWRITES)
        self._states: dict[Path, Rewriting | _State] = {(): _after(first)}
        self._remembered = max(_FEWEST_REMEMBERED, _OPS_REMEMBERED // len(graph.ops))
        self._counts: dict[Path, dict[str, tuple[Kernel, int]]] = {}

    def fork(self, path: Path) -> Fork | None:
        """The question after `path`, or None when all is decided. Raises GraphError for a path of another space."""
        state = self._state(path)
        if isinstance(state, Rewriting):
            return state.fork
        if state.fused is None:
            return None
        question = state.questions[state.position]
        return Fork(question.knob, tuple(Option(((question.knob, answer),)) for answer in question.rule.answers))

    def grouping(self, path: Path) -> Grouping:
        """The plan at the end of a path. Raises GraphError when questions are open after it."""
        state = self._state(path)
        fork = self.fork(path)
        if fork is not None:
            raise GraphError(f"the path leaves {fork.name} open")
        assert isinstance(state, _State)
        return assemble_plan(merge_pointwise(state.partition, {}), path, state.prepared)

    def kernel_counts(self, path: Path) -> dict[str, tuple[Kernel, int]]:
        """About the `kernel_counts` of the grouping at the end of a path, for less work than the whole plan."""
        if path not in self._counts:
            if len(self._counts) >= self._remembered:
                self._counts.clear()
            self._counts[path] = self._counted(path)
        return self._counts[path]

    def _counted(self, path: Path) -> dict[str, tuple[Kernel, int]]:
        return self.grouping(path).kernel_counts()

    def answers(self, path: Path) -> Answers:
        """What `path` decided. Raises GraphError for a path of another space."""
        found = {}
        for length, option in enumerate(path):
            self._state(path[: length + 1])
            ((_, value),) = option.knobs
            found[self._asked(path[:length])] = str(value)
        return found

    def answered(self, answers: Answers) -> Path:
        """The finished path that answers as `answers` do, and with the first option where they say nothing."""
        path: Path = ()
        while (fork := self.fork(path)) is not None:
            wanted = answers.get(self._asked(path))
            options = {str(option.knobs[0][1]): option for option in fork.options}
            path = (*path, options.get(wanted or "", fork.options[0]))
        return path

    def _asked(self, path: Path) -> tuple[str, str]:
        """The knob and the context of the open question after `path`."""
        state = self._state(path)
        if isinstance(state, Rewriting):
            return state.asked
        question = state.questions[state.position]
        return question.rule.knob, question.site.context

    def _state(self, path: Path) -> Rewriting | _State:
        known = self._states.get(path)
        if known is not None:
            return known
        before = self._state(path[:-1])
        fork = self.fork(path[:-1])
        if fork is None or path[-1] not in fork.options:
            raise GraphError(f"{path[-1]} answers no question of this graph")
        ((knob, value),) = path[-1].knobs
        if isinstance(before, Rewriting):
            state = _after(before.answered(str(value)))
        else:
            state = _decided(before, knob, str(value))
        if len(self._states) >= self._remembered:
            prefixes = (path[:length] for length in range(len(path)))
            self._states = {prefix: self._states[prefix] for prefix in prefixes if prefix in self._states}
        self._states[path] = state
        return state


class RepeatedSpace(GroupingSpace):
    """The space of a graph of equal layers: the questions of a short one, and plans of the whole.

    The answers reach the whole by the contexts of their sites, so that a plan is right whatever the short graph lacks.
    """

    def __init__(self, whole: Graph, short: Shortened) -> None:
        super().__init__(short.graph)
        self._short = short
        self._whole = GroupingSpace(whole)

    def _counted(self, path: Path) -> dict[str, tuple[Kernel, int]]:
        """Each layer left out is taken to have as many of a kernel as each that is kept but the first and the last:
        a kernel that reads or serves a neighbour may be another there."""
        short = self._short
        counts = super().grouping(path).kernel_counts()
        return {
            key: (kernel, count + (count + 2) // short.kept * short.left_out) for key, (kernel, count) in counts.items()
        }

    def grouping(self, path: Path) -> Grouping:
        """See `GroupingSpace.grouping`; the decisions are those of the path."""
        fork = self.fork(path)
        if fork is not None:
            raise GraphError(f"the path leaves {fork.name} open")
        return replace(self._whole.grouping(self._whole.answered(self.answers(path))), decisions=path)


def _after(rewriting: Rewriting) -> Rewriting | _State:
    """The open rewrite, or the first question of the rewritten graph."""
    if rewriting.fork is not None:
        return rewriting
    prepared = take_out_prepared(rewriting.graph)
    facts = Facts.of(prepared.graph)
    start = start_partition(facts, reduction_chains(facts))
    return _advance(_State(_questions(start), prepared.steps, start, 0, {}, None))


def _decided(before: _State, knob: str, answer: str) -> _State:
    question = before.questions[before.position]
    partition = before.fused if answer != APART else None
    if partition is None:
        partition = question.rule.apart(before.partition, question.site)
    decisions = {**before.decisions, knob: answer}
    return _advance(replace(before, partition=partition, position=before.position + 1, decisions=decisions))


def _advance(state: _State) -> _State:
    """Follow earlier decisions at equal sites until a question is open."""
    partition = state.partition
    for number in range(state.position, len(state.questions)):
        question = state.questions[number]
        decided = state.decisions.get(question.knob)
        fused = question.rule.fused(partition, question.site)
        if fused is None:
            continue
        if decided is None:
            return replace(state, partition=partition, position=number, fused=fused)
        partition = fused if decided != APART else question.rule.apart(partition, question.site)
    return replace(state, partition=partition, position=len(state.questions), fused=None)


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
    where = copied(graph, builder)
    outputs = [
        builder.add("copy", where[i], dtype=graph.ops[i].out.dtype) if graph.ops[i].kind == "constant" else where[i]
        for i in graph.outputs
    ]
    return builder.build(*outputs)
