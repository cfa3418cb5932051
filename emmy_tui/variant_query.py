"""The rows that the Variants tab lists: a query of the database, and after it what only the prior can judge."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from emmy_tui.filter import OFF
from emmy_tui.predicting import Predictions
from engine.store import Candidate, CandidateQuery, Compared, Condition, Store, StoreError
from engine.store.candidates import PAGE_LIMIT

PREDICTED_LIMIT = 50_000
"""Rows of which a prediction is compared; more would hold up every other question for seconds."""

_HOLDS: dict[Compared, Callable[[float, float], bool]] = {
    Compared.BELOW: operator.lt,
    Compared.AT_MOST: operator.le,
    Compared.ABOVE: operator.gt,
    Compared.AT_LEAST: operator.ge,
}


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to one query; `knobs` are the names that a filter may use, beside Emmy's own."""

    numbers: array[int]
    contexts: tuple[tuple[str, str, int], ...]
    context: str
    knobs: frozenset[str] | None = None


def read_found(
    query: CandidateQuery, predicted: Sequence[Condition], predictions: Predictions, *, with_knobs: bool
) -> Callable[[Store], Found]:
    """The question that a desk answers. Without a context it takes the newest; `kernel_text` means every one."""

    def question(store: Store) -> Found:
        knobs = store.knob_names(query.kernel) if with_knobs else None
        if query.kernel_text:
            return Found(_numbers(store, query, predicted, predictions), (), "", knobs)
        contexts = store.kernel_contexts(query.kernel)
        known = {key for key, _, _ in contexts}
        context = query.context if query.context in known else contexts[0][0] if contexts else ""
        numbers = _numbers(store, replace(query, context=context), predicted, predictions)
        return Found(numbers, contexts, context, knobs)

    return question


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
    for start in range(0, len(numbers), PAGE_LIMIT):
        page = numbers[start : start + PAGE_LIMIT]
        rows = store.candidate_rows(page)
        times = predictions.of(store, rows.values())
        kept.extend(
            number
            for number in page
            if number in times and all(_passes(one, rows[number], times[number]) for one in predicted)
        )
    return kept


def _passes(condition: Condition, row: Candidate, predicted_us: float) -> bool:
    number = off_percent(row, predicted_us) if condition.field == OFF else predicted_us
    if number is None:
        return False
    wanted = float(condition.value)
    if condition.compared in (Compared.IS, Compared.IS_NOT):
        return (abs(number - wanted) <= condition.within) is (condition.compared is Compared.IS)
    return _HOLDS[condition.compared](number, wanted)


def off_percent(row: Candidate, predicted_us: float) -> float | None:
    """By how much the measured time is longer than the predicted one, in percent; the ranking time where there is one,
    as that is what the prior predicts."""
    measured = row.us if row.us is not None else row.deploy_us
    return None if measured is None or predicted_us <= 0 else (measured / predicted_us - 1) * 100
