"""The rows that the Variants tab lists: a query of the database, and after it what only the prior can judge."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from emmy_tui.filter import OFF
from emmy_tui.knob_words import value_text
from emmy_tui.predicting import Predictions, time_beside
from engine.store import Candidate, CandidateQuery, Compared, Condition, Store, StoreError
from engine.store.candidates import BEST, BY, NUMBERS, PAGE_LIMIT, REGIME, TEXTS, margin

PREDICTED_LIMIT = 50_000
"""Rows of which a prediction is compared; more would hold up every other question for seconds."""

VALUES_SHOWN = 8
KNOWN_FIELDS = frozenset((BEST, BY, REGIME, *NUMBERS, *TEXTS))
"""Fields of a condition that are columns; every other one is a knob."""

_HOLDS: dict[Compared, Callable[[float, float], bool]] = {
    Compared.BELOW: operator.lt,
    Compared.AT_MOST: operator.le,
    Compared.ABOVE: operator.gt,
    Compared.AT_LEAST: operator.ge,
}


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to one query; `knobs` are the names that a filter may use, beside Emmy's own, and `pinned` kernel and
    context of every pin in force. `why` is said where a word finds nothing by itself: what there is instead."""

    numbers: array[int]
    contexts: tuple[tuple[str, str, int], ...]
    context: str
    knobs: frozenset[str] | None = None
    pinned: frozenset[tuple[str, str]] = frozenset()
    why: str = ""


def read_found(
    query: CandidateQuery, predicted: Sequence[Condition], predictions: Predictions, *, with_knobs: bool
) -> Callable[[Store], Found]:
    """The question that a desk answers. Without a context it takes the newest; `kernel_text` means every one."""

    def question(store: Store) -> Found:
        knobs = store.knob_names(query.kernel) if with_knobs else None
        pinned = frozenset((one.pin.kernel_key, one.context_key) for one in store.pins())
        if query.kernel_text:
            numbers = _numbers(store, query, predicted, predictions)
            return Found(numbers, (), "", knobs, pinned, "" if numbers else why_nothing(store, query))
        contexts = store.kernel_contexts(query.kernel)
        known = {key for key, _, _ in contexts}
        context = query.context if query.context in known else contexts[0][0] if contexts else ""
        placed = replace(query, context=context)
        numbers = _numbers(store, placed, predicted, predictions)
        return Found(numbers, contexts, context, knobs, pinned, "" if numbers else why_nothing(store, placed))

    return question


def why_nothing(store: Store, query: CandidateQuery) -> str:
    """A sentence about the first knob of a filter whose value no row has, with values that rows have; "" if each word
    finds something by itself."""
    every = store.candidate_numbers(replace(query, conditions=()))
    for one in query.conditions if every else ():
        if one.field in KNOWN_FIELDS or store.candidate_numbers(replace(query, conditions=(one,))):
            continue
        known = store.candidate_numbers(replace(query, conditions=(Condition(one.field, Compared.IS_NOT, ""),)))
        if not known:
            return f"No row here has the knob {one.field}"
        there = [row.schedule[one.field] for row in store.candidate_rows(known).values() if one.field in row.schedule]
        values = sorted(dict.fromkeys(there), key=lambda value: (isinstance(value, str), value))
        few = len(values) <= VALUES_SHOWN and len(known) <= PAGE_LIMIT
        shown = ", ".join(value_text(value) for value in values[:VALUES_SHOWN])
        there_are = "there is" if few else "there are, among others,"
        return f"No row here has {one.field}{one.compared}{_text(one.value)}: {there_are} {shown}"
    return ""


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _numbers(
    store: Store, query: CandidateQuery, predicted: Sequence[Condition], predictions: Predictions
) -> array[int]:
    numbers = store.candidate_numbers(query)
    if not predicted:
        return numbers
    if len(numbers) > PREDICTED_LIMIT:
        raise StoreError(
            f"{len(numbers)} rows are too many to compare predictions of: "
            f"filter them to {PREDICTED_LIMIT} by other columns"
        )
    kept = array("q")
    for page in pages(store, numbers):
        times = predictions.of(store, page)
        kept.extend(
            row.number
            for row in page
            if row.number in times and all(_passes(one, row, times[row.number]) for one in predicted)
        )
    return kept


def pages(store: Store, numbers: Sequence[int]) -> Iterator[list[Candidate]]:
    """The rows with these numbers in their order, as many at once as the store gives."""
    for start in range(0, len(numbers), PAGE_LIMIT):
        page = numbers[start : start + PAGE_LIMIT]
        rows = store.candidate_rows(page)
        yield [rows[number] for number in page if number in rows]


def _passes(condition: Condition, row: Candidate, predicted_us: float) -> bool:
    number = off_percent(row, predicted_us) if condition.field == OFF else predicted_us
    if number is None:
        return False
    wanted = float(condition.value)
    if condition.compared in (Compared.IS, Compared.IS_NOT):
        equal = wanted - condition.within <= number <= wanted + condition.within
        return equal is (condition.compared is Compared.IS)
    return _HOLDS[condition.compared](number, wanted + margin(condition))


def off_percent(row: Candidate, predicted_us: float) -> float | None:
    """By how much the measured time is longer than the predicted one, in percent."""
    measured = time_beside(row)
    return None if measured is None or predicted_us <= 0 else (measured / predicted_us - 1) * 100
