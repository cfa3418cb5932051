"""The forks of one kernel as a lazily walked tree: only options that some legal schedule completes are offered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, compress
from operator import itemgetter

from engine.codegen.family import Family, Rule
from engine.ir.kernel import Kernel
from engine.knobs import canonical_position
from engine.vocabulary import Fork, KnobValue, Option, Schedule, Target

Path = Sequence[Option]
_Knobs = tuple[tuple[str, KnobValue], ...]
_Values = tuple[KnobValue, ...]


class ScheduleSpace:
    """Answers `fork(path)` for one kernel on one target.

    An option carries every knob value that follows from it: those it asks about and those that only one value
    completes. So the options of a finished path hold a full schedule, and no fork has a single answer, except when
    the whole space is one schedule. The answer depends on the path alone.

    What was found is remembered, so that a space is asked cheaply once all that it offers was listed.
    """

    def __init__(self, family: Family, kernel: Kernel, target: Target) -> None:
        self.kernel = kernel
        self.target = target
        self._forks = family.forks(kernel, target)
        self._names = tuple(name for fork in self._forks for name, _ in fork.options[0].knobs)
        self._rules = _rules_by_depth(self._forks, family.rules(kernel, target))
        self._answers = [_answers(fork) for fork in self._forks]
        self._decided = list(accumulate((len(fork.options[0].knobs) for fork in self._forks), initial=0))
        """For each fork, how many knobs are decided before it in order."""
        self._completes: dict[_Knobs, bool] = {}
        self._offered: list[dict[str, KnobValue]] | None = None
        self._begun: set[_Values] | None = None
        """Once all is listed: the first values of everything offered, as many as there may be."""

    def fork(self, path: Path) -> Fork | None:
        """The question after `path`, or None when every knob is decided. No option at all is a dead end."""
        values = _merged(path)
        before = dict(values)
        depth = self._settle(values)
        if depth is None:
            return Fork("schedule", ())
        forced = tuple((name, value) for name, value in values.items() if name not in before)
        if depth == len(self._forks):
            return Fork("schedule", (_option(forced),)) if forced else None
        return Fork(
            self._forks[depth].name,
            tuple(_option((*forced, *self._following(values, option))) for option in self._viable(values, depth)),
        )

    def schedule(self, path: Path) -> Schedule:
        """The schedule that a finished path spells out."""
        return Schedule.of(_merged(path))

    def offered(self) -> Iterator[Schedule]:
        """Every offered schedule, in canonical order."""
        if self._offered is None:
            # One at a time: who wants the first alone needn't wait for all.
            yield from map(Schedule.of, self._walk({}, 0))
        else:
            yield from map(Schedule.of, self._offered)

    def assignments(self) -> Sequence[Mapping[str, KnobValue]]:
        """The knobs of every offered schedule, in canonical order; what is offered after a path is then known too."""
        if self._offered is None:
            found: list[_Values] = [()]
            for answers, rules in zip(self._answers, self._rules, strict=True):
                found = [values + answer for values in found for answer in answers]
                for rule in rules:
                    found = rule.kept(found, self._names)
            self._begun = {values[:length] for length in range(len(self._names) + 1) for values in found}
            self._offered = [dict(zip(self._names, values, strict=True)) for values in found]
        return self._offered

    def _settle(self, values: dict[str, KnobValue]) -> int | None:
        """Decide, in `values`, what has one answer; the depth of the first open fork, or None at a dead end."""
        for depth, fork in enumerate(self._forks):
            if all(name in values for name, _ in fork.options[0].knobs):
                continue
            viable = self._viable(values, depth)
            if not viable:
                return None
            if len(viable) > 1:
                return depth
            values.update(viable[0].knobs)
        return len(self._forks)

    def _following(self, values: dict[str, KnobValue], option: Option) -> tuple[tuple[str, KnobValue], ...]:
        """The option's knobs, and those that have one answer after it."""
        after = {**values, **dict(option.knobs)}
        self._settle(after)
        return tuple((name, value) for name, value in after.items() if name not in values)

    def _viable(self, values: dict[str, KnobValue], depth: int) -> list[Option]:
        """Options of the fork at `depth` that agree with `values` and that some offered schedule completes."""
        options = self._forks[depth].options
        begun, before = self._begun, self._in_order(values)
        if begun is not None and before is not None and len(before) == self._decided[depth]:
            answers = self._answers[depth]
            return [option for option, answer in zip(options, answers, strict=True) if before + answer in begun]
        found = []
        for option in options:
            if any(values.get(name, value) != value for name, value in option.knobs):
                continue
            if self._is_completed({**values, **dict(option.knobs)}):
                found.append(option)
        return found

    def _in_order(self, values: dict[str, KnobValue]) -> _Values | None:
        """The values of the first knobs, in order, if these are all that `values` holds."""
        try:
            return tuple([values[name] for name in self._names[: len(values)]])
        except KeyError:
            return None

    def _is_completed(self, values: dict[str, KnobValue]) -> bool:
        """Whether something offered agrees with `values`."""
        before = self._in_order(values) if self._begun is not None else None
        if self._begun is not None and before is not None:
            return before in self._begun
        key = tuple([(name, values[name]) for name in self._names if name in values])
        known = self._completes.get(key)
        if known is None:
            known = self._completes[key] = next(self._walk(values, 0), None) is not None
        return known

    def _walk(self, values: dict[str, KnobValue], depth: int) -> Iterator[dict[str, KnobValue]]:
        """Offered completions of `values` from the fork at `depth` on."""
        if depth == len(self._forks):
            yield values
            return
        for option in self._forks[depth].options:
            if all(values.get(name, value) == value for name, value in option.knobs):
                after = {**values, **dict(option.knobs)}
                if all(rule.holds(after) for rule in self._rules[depth]):
                    yield from self._walk(after, depth + 1)


class _Remembering:
    """A rule that is asked once for the same values of its knobs: a walk changes others in between."""

    def __init__(self, rule: Rule) -> None:
        self.knobs = rule.knobs
        self._broken = rule.broken
        self._of = itemgetter(*rule.knobs)
        self._holds: dict[object, bool] = {}
        """By what `_of` gives: the values of the rule's knobs, in order."""

    def holds(self, values: dict[str, KnobValue]) -> bool:
        key = self._of(values)
        known = self._holds.get(key)
        if known is None:
            known = self._holds[key] = not self._broken(values)
        return known

    def kept(self, found: list[_Values], names: Sequence[str]) -> list[_Values]:
        """Those of `found`, the values of the first of `names`, that the rule holds for, in order."""
        of = itemgetter(*(names.index(name) for name in self.knobs))
        keys = list(map(of, found))
        one_of_each = dict(zip(keys, found, strict=True))
        for key in one_of_each.keys() - self._holds.keys():
            self._holds[key] = not self._broken(dict(zip(names, one_of_each[key], strict=False)))
        return list(compress(found, map(self._holds.__getitem__, keys)))


def _answers(fork: Fork) -> list[_Values]:
    """The values of each option, in the order of the first one's knobs."""
    names = [name for name, _ in fork.options[0].knobs]
    return [tuple([dict(option.knobs)[name] for name in names]) for option in fork.options]


def _rules_by_depth(forks: tuple[Fork, ...], rules: tuple[Rule, ...]) -> list[tuple[_Remembering, ...]]:
    """For each fork the rules that can be asked once it is decided and not earlier."""
    known: set[str] = set()
    result: list[tuple[_Remembering, ...]] = []
    # Those of few knobs first: they are asked seldom, and spare the others what they rule out.
    left = [_Remembering(rule) for rule in sorted(rules, key=lambda rule: len(rule.knobs))]
    for fork in forks:
        known |= {name for name, _ in fork.options[0].knobs}
        result.append(tuple(rule for rule in left if set(rule.knobs) <= known))
        left = [rule for rule in left if not set(rule.knobs) <= known]
    return result


def _merged(path: Path) -> dict[str, KnobValue]:
    return {name: value for option in path for name, value in option.knobs}


def _option(knobs: Sequence[tuple[str, KnobValue]]) -> Option:
    return Option(tuple(sorted(knobs, key=lambda knob: canonical_position(*knob))))
