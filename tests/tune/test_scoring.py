"""How a kernel's search is guided: by the prior, by the surrogate where the settings say so, by nothing if foreign."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.events import Event, Measured, RunFinished, RunState
from engine.ir.foreign import FOREIGN, NO_BODY, Identity
from engine.ir.kernel import Kernel
from engine.ir.plan import Program
from engine.measure import Device
from engine.prior import ColdModel, Surrogate
from engine.search import EnumeratedSpace, Search
from engine.store import RecordedGrouping, Store, read_results
from engine.store.importing.recording import foreign_grouping
from engine.tune import Control, ReplayRequest, Settings, tune_replay
from engine.tune.problem import CapturedProblem, RecordedProblem
from engine.tune.scoring import LearningSearch, kernel_scorer, kernel_search, no_opinion
from engine.vocabulary import KnobValue, Option, Target
from tests.prior.kernels import matmul
from tests.store.importing.files import cache, written

POINTS: list[dict[str, KnobValue]] = [{"block": 2**i, "unroll": j} for i in range(8) for j in range(1, 9)]


@dataclass
class _Host:
    settings: Settings
    events: list[Event]
    control: Control = field(default_factory=Control)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def change_state(self, state: RunState, reason: str = "") -> None:
        return None

    def own_device(self, device: Device) -> Device:
        return device


@pytest.fixture
def database(tmp_path: Path) -> Path:
    document = cache([])
    document["tune_params_keys"] = ["block", "unroll"]
    document["cache"] = {
        f"{knobs['block']},{knobs['unroll']}": {
            **knobs,
            "time": 1 + abs(int(knobs["block"]) - 32) + int(knobs["unroll"]),
        }
        for knobs in POINTS
    }
    path = tmp_path / "emmy.db"
    with Store.open(path) as store:
        store.import_results([read_results(written(tmp_path / "cache.json", document))])
    return path


def test_where_the_prior_knows_nothing_the_search_learns_from_its_own_answers(database: Path) -> None:
    with Store.open(database, read_only=True) as store:
        (kernel,), (context,) = store.kernels(), store.contexts()
        grouping = RecordedGrouping("1", (), foreign_grouping(kernel), None, None, "")
        problem = RecordedProblem("stencil", [grouping], store, context.key)
        assert type(kernel_search(Settings(), ColdModel(), problem, kernel, Target())) is LearningSearch
        assert kernel_scorer(ColdModel(), problem, kernel, Target()) is no_opinion


def test_of_a_kernel_that_the_prior_knows_the_default_is_the_tree_alone() -> None:
    kernel = matmul(64, 64, 64)
    problem = CapturedProblem(Program(kernel.body, "matmul"), Target())
    assert type(kernel_search(Settings(), ColdModel(), problem, kernel, Target())) is Search
    assert type(kernel_search(Settings(surrogate=True), ColdModel(), problem, kernel, Target())) is LearningSearch


def test_a_learning_search_has_few_candidates_in_flight_until_it_has_answers() -> None:
    search = LearningSearch(EnumeratedSpace(POINTS), Surrogate(POINTS), patience=60)
    ahead = []
    while (proposal := search.ask()) is not None:
        search.tell(proposal, 1.0)
        ahead.append(search.ahead(32))
    assert ahead[0] == 8
    assert ahead == sorted(ahead)
    assert search.ahead(4) == 4
    assert search.decided > 32


def test_a_foreign_kernel_has_no_prediction() -> None:
    kernel = Kernel(FOREIGN, NO_BODY, "k", Identity.of("k", "", ("a",)))
    assert kernel.flops == 0
    assert [math.isnan(value) for value in no_opinion((), [Option(())])] == [True]


@pytest.mark.parametrize("surrogate", [False, True])
@pytest.mark.parametrize("window", [1, 32])
def test_an_imported_database_is_searched(database: Path, surrogate: bool, window: int) -> None:
    def walk() -> list[str]:
        events: list[Event] = []
        settings = Settings(surrogate=surrogate, window=window, patience=40)
        (finished,) = tune_replay(ReplayRequest(database), _Host(settings, events))
        assert isinstance(finished, RunFinished)
        assert finished.best_us == 2000.0
        return [event.schedule for event in events if isinstance(event, Measured)]

    assert walk() == walk()


def test_a_withdrawn_proposal_comes_back() -> None:
    surrogate = Surrogate(POINTS)
    search = LearningSearch(EnumeratedSpace(POINTS), surrogate)
    first = search.ask()
    assert first is not None
    search.withdraw(first)
    again = search.ask()
    assert again is not None
    assert again.knobs == first.knobs
