"""How many measurements a search needs: strategies over recorded landscapes, as a table and a plot.

    python -m tests.bench.search tests/data/landscapes_h200.db.gz
    python -m tests.bench.search DB [--kernel TEXT] [--seeds N] [--only NAME ...] [--budget N] [--least N] [--svg FILE]

A landscape is every recorded candidate of one kernel on one GPU; one evaluation is a candidate seen for the first
time, failed ones included, repeats free, times replayed without noise. A run ends when its budget is spent, at the
optimum, or with 1 % reached and 200 spent, so CPU seconds are those of the shortened run. Medians and 90th
percentiles take the upper neighbour; a run that never gets there counts as beyond the budget. "Ends within" is what
default patience would have left: the best at the first 50 answers in a row without a new one.

What a seed is: the tree search itself has none. A surrogate's seed orders its first candidates and grows its forests;
for the tree alone a seed renames each knob's values, so that ties fall elsewhere. Optuna and Kernel Tuner's own
strategies (simulation mode) run where these packages are installed, and are skipped by name where they are not.
"""

from __future__ import annotations

import argparse
import gzip
import math
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from engine.store import Store
from tests.bench.landscape import GOALS, SPENT_AT, Landscape, Ledger, Spent, landscapes
from tests.bench.plot import progress_svg
from tests.bench.rivals import rivals
from tests.bench.strategies import (
    Strategy,
    View,
    at_random,
    forest_improvement,
    likelihood_free,
    local_search,
    ours,
    tree_alone,
)

ENDS = (5, 2)
ENDED = "ends within " + "/".join(map(str, ENDS)) + " % (% of seeds)"
LEAST = 100
"""Recorded candidates from which a kernel is a landscape that is worth a search."""
NO_PRIOR = "ours, no prior"
PRIOR, TREE_PRIOR = "ours+prior", "tree+prior"
OWN: dict[str, Strategy] = {
    "ours": ours(),
    PRIOR: ours(view=View.LEARNED),
    "ours, one at a time": ours(most_ahead=1),
    NO_PRIOR: ours(view=View.NONE),
    "tree alone": tree_alone(),
    TREE_PRIOR: tree_alone(view=View.LEARNED),
    "random": at_random,
    "ILS": local_search,
    "RF-EI": forest_improvement,
    "LFBO": likelihood_free,
}


@dataclass(frozen=True)
class Outcome:
    """One run. `spent` holds the evaluations to each goal, None where it was not reached."""

    spent: tuple[int | None, ...]
    regrets: tuple[float, ...]
    cpu_s: float
    curve: tuple[float, ...]


def run(landscape: Landscape, strategy: Strategy, seed: int, budget: int) -> Outcome:
    ledger = Ledger(landscape, budget)
    began = time.process_time()
    try:
        while not ledger.over:
            strategy(ledger, seed)
            if not ledger.over:
                break
    except Spent:
        pass
    cpu_s = time.process_time() - began
    regrets = tuple(ledger.regret(spent) for spent in SPENT_AT)
    return Outcome(tuple(ledger.spent_to(goal) for goal in GOALS), regrets, cpu_s, tuple(ledger.curve))


PATIENCE = 50
"""The default of a run: so many answers without a new best end a kernel's search."""


def ended(outcome: Outcome, best: float) -> float:
    """Per cent above the best at which the run would have ended by patience."""
    leading, since, here = math.inf, 0, math.inf
    for here in outcome.curve:
        since = 0 if here < leading else since + 1
        leading = here
        if since >= PATIENCE:
            break
    return 100 * (here / best - 1)


def quantile(values: Iterable[int | None], share: float, budget: int) -> str:
    """The upper neighbour, as text: ">budget" where the run that it falls on never got there."""
    ordered = sorted(budget + 1 if value is None else value for value in values)
    found = ordered[min(int(share * len(ordered)), len(ordered) - 1)]
    return f">{budget}" if found > budget else str(found)


def row_of(name: str, outcomes: Sequence[Outcome], budget: int, best: float) -> list[str]:
    cells = [name]
    for place in range(len(GOALS)):
        spent = [outcome.spent[place] for outcome in outcomes]
        share = 100 * sum(value is not None for value in spent) / len(spent)
        cells.append(f"{quantile(spent, 0.5, budget)} / {quantile(spent, 0.9, budget)} ({share:.0f})")
    regrets = [median(outcome.regrets[place] for outcome in outcomes) for place in range(len(SPENT_AT))]
    cells.append(" / ".join(f"{regret:.1f}" for regret in regrets))
    ends = [ended(outcome, best) for outcome in outcomes]
    cells.append(" / ".join(f"{100 * sum(end <= goal for end in ends) / len(ends):.0f}" for goal in ENDS))
    return [*cells, f"{median(outcome.cpu_s for outcome in outcomes):.2g}", str(len(outcomes))]


def table(rows: Sequence[Sequence[str]]) -> str:
    head = ["strategy", *(f"to {goal} %" for goal in GOALS)]
    head += ["regret % at " + "/".join(map(str, SPENT_AT)), ENDED, "CPU s", "seeds"]
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in (head, *rows)]
    return "\n".join(
        [f"| {lines[0]} |", "|" + "|".join("-" * (width + 2) for width in widths) + "|"]
        + [f"| {line} |" for line in lines[1:]]
    )


def summary(found: dict[Landscape, dict[str, list[Outcome]]], budget: int) -> str:
    """One row a strategy: geometric means over the landscapes of the medians, shares of all seeds, CPU seconds a run.

    A median that was not reached counts as the budget and marks the mean with ">".
    """
    names = dict.fromkeys(name for by in found.values() for name in by)
    lines = ["| strategy | " + " | ".join(f"to {goal} %" for goal in GOALS) + f" | {ENDED} | CPU s |"]
    lines.append("|---|" + "---:|" * (len(GOALS) + 2))
    for name in names:
        here = {land: by[name] for land, by in found.items() if name in by}
        cells = []
        for place in range(len(GOALS)):
            medians = [upper_median([run.spent[place] for run in runs], budget) for runs in here.values()]
            mean = math.exp(sum(math.log(min(one, budget)) for one in medians) / len(medians))
            cells.append((">" if max(medians) > budget else "") + (f"{mean:.1f}" if mean < 10 else f"{mean:.0f}"))
        ends = [ended(run, land.best) for land, runs in here.items() for run in runs]
        shares = " / ".join(f"{100 * sum(end <= goal for end in ends) / len(ends):.0f}" for goal in ENDS)
        cpu = sum(run.cpu_s for runs in here.values() for run in runs) / len(ends)
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {shares} | {cpu:.2g} |")
    return "\n".join(lines)


def upper_median(values: Sequence[int | None], budget: int) -> int:
    ordered = sorted(budget + 1 if value is None else value for value in values)
    return ordered[len(ordered) // 2]


def compare(landscape: Landscape, strategies: dict[str, Strategy], seeds: int, budget: int) -> dict[str, list[Outcome]]:
    """Every strategy over one landscape, its table printed row by row as they end."""
    counts = "/".join(str(landscape.within(goal)) for goal in GOALS)
    failed = int((landscape.us != landscape.us).sum())
    goals = "/".join(map(str, GOALS))
    print(f"\n### {landscape.name}: {len(landscape)} recorded, {failed} failed; within {goals} %: {counts}", flush=True)
    found = {}
    for name, strategy in strategies.items():
        if landscape.predicted is None and name in (NO_PRIOR, PRIOR, TREE_PRIOR):
            continue  # they are what "ours" and the tree do there
        found[name] = [run(landscape, strategy, seed, budget) for seed in range(seeds)]
    print(table([row_of(name, outcomes, budget, landscape.best) for name, outcomes in found.items()]), flush=True)
    return found


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    """A recorded database, unpacked beside nothing of the user's if it is compressed."""
    with tempfile.TemporaryDirectory() as folder:
        if path.suffix == ".gz":
            plain = Path(folder) / path.stem
            plain.write_bytes(gzip.decompress(path.read_bytes()))
            path = plain
        with Store.open(path, read_only=True) as store:
            yield store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", type=Path)
    parser.add_argument("--kernel", default="")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", type=int, default=400)
    parser.add_argument("--least", type=int, default=LEAST, help="recorded candidates that a landscape needs")
    parser.add_argument("--only", action="append", help="names of strategies")
    parser.add_argument("--svg", type=Path)
    asked = parser.parse_args()
    other, skipped = rivals()
    strategies = {name: one for name, one in {**OWN, **other}.items() if not asked.only or name in asked.only}
    for reason in skipped:
        print(f"skipped: {reason}")
    found = {}
    with opened(asked.database) as store:
        learned = bool({PRIOR, TREE_PRIOR} & set(strategies))
        for landscape in landscapes(store, asked.kernel, asked.least, learned=learned):
            found[landscape] = compare(landscape, strategies, asked.seeds, asked.budget)
    print(f"\n### {len(found)} landscapes, {asked.seeds} seeds: geometric means of medians")
    print(summary(found, asked.budget), flush=True)
    if asked.svg:
        curves = {land: {name: [o.curve for o in runs] for name, runs in by.items()} for land, by in found.items()}
        asked.svg.write_text(progress_svg(curves, asked.budget))
        print(f"plot: {asked.svg}")


if __name__ == "__main__":
    main()
