"""What a program would run as: over a database of a real search on a fake GPU, and over none."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.cli.explaining import times_text
from engine.cli.output import us_text
from engine.codegen import offered_schedules
from engine.deploy import DeploymentError, NoEvidenceError, Source, deployment, deploys_now, pin_standings
from engine.deploy.deployment import UnfollowedPinError
from engine.deploy.fitting import fitted, program_key
from engine.deploy.forks import ForkSource
from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.ir.foreign import FOREIGN, NO_BODY, Identity
from engine.ir.graph import Graph
from engine.ir.plan import Program
from engine.prior import ColdModel
from engine.store import Standing, Store
from engine.vocabulary import Measurement, Regime, Schedule, Status, Target, Timing
from tests.tune.fake_device import CONTEXT, FakeDevice
from tests.tune.rig import linear_gelu_program, tune_with

PROGRAM = linear_gelu_program(64)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("tuned") / "t.db"
    tune_with(database, FakeDevice(), PROGRAM)
    return database


@pytest.fixture
def store(path: Path, tmp_path: Path) -> Iterator[Store]:
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    with Store.open(copy) as opened:
        yield opened


def turned(program: Program) -> Program:
    """The same program with its inputs first named in another order."""
    build = GraphBuilder()
    bias = build.input(TensorSpec.contiguous((64,), "bfloat16"), "b")
    right = build.input(TensorSpec.contiguous((64, 64), "bfloat16"), "w")
    left = build.input(TensorSpec.contiguous((64, 64), "bfloat16"), "x")
    done = build.add("gelu", build.add("add", build.add("matmul", left, right), bias))
    return replace(program, graph=build.build(done))


def test_the_fastest_recorded_grouping_is_chosen_and_each_fork_names_its_row(store: Store) -> None:
    chosen = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel(), strict=True)
    (run,) = store.runs()
    rows = {row.id: row for row in store.recorded_groupings(run.id)}
    times = {name: row.whole_us for name, row in rows.items() if row.whole_us is not None}
    assert chosen.us == min(times.values())
    assert chosen.grouping == rows[min(times, key=lambda name: times[name])].grouping
    assert chosen.predicted == []
    for fork in chosen.forks:
        assert (fork.source, fork.regime) == (ForkSource.ASSEMBLED, Regime.DEPLOY)
        assert times[fork.row] == fork.us == chosen.us
        assert fork.runner_up not in ("", fork.answer)
        second = rows[fork.runner_up_row]
        whole = second.whole_us is not None
        assert fork.compared is (ForkSource.ASSEMBLED if whole else ForkSource.SUM)
        assert fork.runner_up_us == (second.whole_us if whole else second.sum_us)
        assert fork.compared_us == (rows[fork.row].whole_us if whole else rows[fork.row].sum_us)
    for item in chosen.kernels:
        assert item.chosen is not None
        assert item.chosen.source in (Source.DEPLOY, Source.RANKING)
        assert item.schedule == chosen.schedules[item.kernel.key]
        if item.runner_up is not None:
            assert item.runner_up.schedule != item.schedule


def test_a_graph_is_never_compared_with_a_sum_and_the_head_line_names_the_graph(store: Store) -> None:
    """As after a search that put only the winner together, and a better schedule that was measured later."""
    (run,) = store.runs()
    best, *others = sorted(store.recorded_groupings(run.id), key=lambda row: row.whole_us or math.inf)
    connection = store._connection.db.conn
    for other in others:
        connection.execute("UPDATE grouping SET assembled_us = NULL, pdl_us = NULL WHERE id = ?", (other.id,))
    connection.commit()
    chosen = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel())
    for fork in chosen.forks:
        assert (fork.source, fork.us) == (ForkSource.ASSEMBLED, best.whole_us)
        assert (fork.compared, fork.compared_us) == (ForkSource.SUM, best.sum_us)
    assert "not measured" not in times_text(chosen)
    recorded = f"({us_text(best.whole_us)} us with those that it was recorded with)"
    without = times_text(replace(chosen, us=None, alone_us=None))
    assert without.startswith(f"not measured as one graph of these schedules {recorded}")
    assert times_text(replace(chosen, us=None, forks=())).startswith("not measured as one graph,")


def test_a_pin_decides_and_can_be_left_out(store: Store) -> None:
    before = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel())
    kernel = before.kernels[0].kernel
    other = next(s for s in store.schedules(kernel.key, CONTEXT.key) if s != before.schedules[kernel.key])
    store.record_pin(kernel.key, other, CONTEXT.key, author="me")
    pinned = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel())
    assert pinned.kernels[0].chosen is not None
    assert pinned.kernels[0].chosen.source is Source.PIN
    assert pinned.schedules[kernel.key] == other
    assert before.us is not None
    assert pinned.us is None
    without = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel(), pins=False)
    assert without.schedules == before.schedules
    now = deploys_now(store, kernel.key, CONTEXT.key, ColdModel())
    assert now.schedule == other
    assert {line.source for line in now.lines} >= {Source.PIN, Source.PRIOR, Source.FIRST}


@pytest.mark.parametrize("timed", [Regime.DEPLOY, Regime.RANKING, None])
def test_what_a_pin_is_compared_with_is_of_the_pins_regime(store: Store, timed: Regime | None) -> None:
    """A pin that only the ranking regime knows is beside a ranking time, and one without a time beside a deploy time;
    the pins' own list says the same."""
    kernel = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel()).kernels[0].kernel
    measured = store.schedules(kernel.key, CONTEXT.key)
    by_deploy = [one for one in measured if store.deploy(kernel.key, one, CONTEXT.key) is not None]
    places = {
        Regime.DEPLOY: max(by_deploy, key=lambda one: store.timed(kernel.key, CONTEXT.key)[one]),
        Regime.RANKING: next(one for one in measured if one not in by_deploy),
        None: next(one for one in offered_schedules(kernel, Target()) if one not in measured),
    }
    store.record_pin(kernel.key, places[timed], CONTEXT.key, author="me")
    now = deploys_now(store, kernel.key, CONTEXT.key, ColdModel())
    assert now.chosen is not None
    assert now.runner_up is not None
    assert (now.chosen.source, now.chosen.us is None) == (Source.PIN, timed is None)
    best = store.best(kernel.key, CONTEXT.key, timed or Regime.DEPLOY)
    assert best is not None
    assert now.runner_up.us == best.us
    assert now.runner_up.source is (Source.RANKING if timed is Regime.RANKING else Source.DEPLOY)
    (standing,) = pin_standings(store)
    assert (standing.us, standing.best_us) == (now.chosen.us, now.runner_up.us)


@pytest.mark.parametrize("partial", [False, True])
def test_an_illegal_pin_is_refused_in_the_words_of_its_line(store: Store, partial: bool) -> None:
    kernel = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel()).kernels[0].kernel
    whole = store.schedules(kernel.key, CONTEXT.key)[0].as_dict()
    wrong = Schedule.of({"NUM_WARPS": 8} if partial else {**whole, "NUM_WARPS": 3})
    store.record_pin(kernel.key, wrong, CONTEXT.key, author="me")
    shown = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel(), refuse_illegal_pins=False)
    reason = next(line.illegal for line in shown.kernels[0].lines if line.source is Source.PIN)
    with pytest.raises(UnfollowedPinError, match="a pin decides nothing here: ") as refused:
        deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel())
    assert reason.rstrip(".") in str(refused.value)
    assert deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel(), pins=False).schedules == shown.schedules
    (standing,) = pin_standings(store)
    assert (standing.standing, standing.illegal) == (Standing.ILLEGAL, reason)


def test_a_time_belongs_to_the_schedules_that_it_was_measured_with(store: Store) -> None:
    before = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel())
    kernel = before.kernels[0].kernel
    measured = {schedule.key for schedule in store.schedules(kernel.key, CONTEXT.key)}
    never = next(one for one in offered_schedules(kernel, Target()) if one.key not in measured)
    store.record_pin(kernel.key, never, CONTEXT.key, author="me")
    pinned = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel())
    assert (pinned.us, pinned.sum_us, len(pinned.untimed)) == (None, None, 1)
    store.record_pin(kernel.key, before.schedules[kernel.key], CONTEXT.key, author="me")
    again = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel())
    assert (again.us, again.untimed) == (before.us, [])


def test_another_context_has_predictions_only_and_strict_refuses_them(store: Store) -> None:
    chosen = deployment(PROGRAM, store, "elsewhere", Target(), ColdModel())
    assert {fork.source for fork in chosen.forks} == {ForkSource.PRIOR}
    assert {item.chosen.source for item in chosen.kernels if item.chosen} == {Source.PRIOR}
    assert chosen.predicted
    assert chosen.us is None
    with pytest.raises(NoEvidenceError, match="no measurement and no pin decides"):
        deployment(PROGRAM, store, "elsewhere", Target(), ColdModel(), strict=True)


def test_what_is_known_of_kernels_decides_the_forks_of_a_program_that_nobody_tuned(store: Store) -> None:
    wider = GraphBuilder()
    x = wider.input(TensorSpec.contiguous((64, 64), "bfloat16"))
    w = wider.input(TensorSpec.contiguous((64, 64), "bfloat16"))
    b = wider.input(TensorSpec.contiguous((64,), "bfloat16"))
    once = wider.add("gelu", wider.add("add", wider.add("matmul", x, w), b))
    twice = wider.add("gelu", wider.add("add", wider.add("matmul", once, w), b))
    chosen = deployment(Program(wider.build(twice), "twice"), store, CONTEXT.key, Target(), ColdModel())
    tuned = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel())
    known = {item.kernel.key: item.schedule for item in tuned.kernels}
    shared = [item for item in chosen.kernels if item.kernel.key in known]
    assert shared
    assert all(item.schedule == known[item.kernel.key] for item in shared)


def test_a_grouping_that_is_given_is_kept(store: Store) -> None:
    (run,) = store.runs()
    last = store.recorded_groupings(run.id)[-1].grouping
    chosen = deployment(last, store, CONTEXT.key, Target(), ColdModel())
    assert chosen.grouping is last
    assert {fork.source for fork in chosen.forks} <= {ForkSource.GIVEN}


def test_a_chip_without_room_is_one_sentence(store: Store) -> None:
    tiny = Target(shared_bytes=16, shared_bytes_per_multiprocessor=16, registers_per_multiprocessor=1)
    with pytest.raises(DeploymentError, match="can't be built: no schedule of it is legal on this chip"):
        deployment(PROGRAM, store, "elsewhere", tiny, ColdModel())


def test_a_program_in_another_order_finds_its_recorded_grouping(store: Store) -> None:
    other = turned(PROGRAM)
    assert program_key(other.graph) == program_key(PROGRAM.graph)
    own = deployment(PROGRAM, store, CONTEXT.key, Target(), ColdModel())
    found = deployment(other, store, CONTEXT.key, Target(), ColdModel(), strict=True)
    assert (found.us, found.schedules) == (own.us, own.schedules)
    assert found.grouping.input_specs() == other.graph.input_specs()
    assert [spec.shape for spec in own.grouping.input_specs()] == [(64, 64), (64, 64), (64,)]


def shuffled(graph: Graph, seed: int) -> Graph:
    """The inputs in another order; ops keep theirs."""
    order = list(range(len(graph.inputs)))
    random.Random(seed).shuffle(order)
    return replace(graph, inputs=tuple(graph.inputs[i] for i in order), labels=())


@pytest.mark.parametrize("seed", range(6))
def test_a_fitted_grouping_reads_the_same_tensors(store: Store, seed: int) -> None:
    graph = shuffled(PROGRAM.graph, seed)
    (run,) = store.runs()
    for row in store.recorded_groupings(run.id):
        found = fitted(row.grouping, PROGRAM.graph, graph)
        assert found is not None
        assert found.input_specs() == graph.input_specs()
        for old, new in zip(row.grouping.calls, found.calls, strict=True):
            specs = (PROGRAM.graph.inputs, graph.inputs)
            for before, after in zip(old.arguments, new.arguments, strict=True):
                assert before.spec == after.spec
                if before.buffer < len(specs[0]):
                    assert specs[0][before.buffer] == specs[1][after.buffer]
                else:
                    assert before.buffer == after.buffer


def test_values_prepared_of_what_is_no_weight_are_not_taken_over(tmp_path: Path) -> None:
    weighted = replace(PROGRAM.graph, weights=(1, 2))
    with Store.open(tmp_path / "w.db") as store:
        tune_with(tmp_path / "w.db", FakeDevice(), replace(PROGRAM, graph=weighted))
        (run,) = store.runs()
        rows = store.recorded_groupings(run.id)
    preparing = [row for row in rows if row.grouping.prepared]
    assert preparing
    assert all(fitted(row.grouping, weighted, PROGRAM.graph) is None for row in preparing)
    assert all(fitted(row.grouping, weighted, weighted) is not None for row in preparing)


def test_a_kernel_of_another_tool_is_decided_by_its_own_times_or_by_nothing(store: Store) -> None:
    foreign = Kernel(FOREIGN, NO_BODY, "theirs", Identity.of("gemm", "512 cubed", ("BLOCK",)))
    store.record_kernel(foreign)
    with pytest.raises(DeploymentError, match=r"theirs .* can't be built: foreign is no kernel family"):
        deploys_now(store, foreign.key, CONTEXT.key, ColdModel())
    schedule = Schedule.of({"BLOCK": 3})
    (run,) = store.runs()
    timing = Timing(5.0, 5.0, 5.0, (5.0,))
    measured = Measurement(foreign.key, schedule, Regime.RANKING, CONTEXT.key, Status.OK, timing)
    store.record_measurement(measured, run=run.id)
    now = deploys_now(store, foreign.key, CONTEXT.key, ColdModel())
    assert (now.schedule, now.regime) == (schedule, Regime.RANKING)
