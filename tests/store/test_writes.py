"""What is written, what is kept, and what nothing can replace."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from engine.events import Health, NodeOpened, NodeState, NodeVisited, RunState, StateChanged
from engine.store import NodeRecord, Store, StoreError, node_key
from engine.vocabulary import FailureKind, Regime, Schedule, Status, Target

REGIMES = pytest.mark.parametrize("regime", Regime)


def known(store: Store, sample, regime: Regime):
    lookup = store.ranking if regime is Regime.RANKING else store.deploy
    return lookup(sample.matmul.key, sample.schedule(), sample.context.key)


def leaf(sample, **changes) -> NodeRecord:
    knobs = sample.schedule().as_dict()
    key = node_key(sample.context.key, sample.matmul.key, knobs)
    return replace(NodeRecord(key, "", sample.matmul.key, knobs, "NUM_WARPS=4", 2, 1.0, is_leaf=True), **changes)


@REGIMES
def test_the_first_success_stays(store: Store, run: str, sample, regime: Regime) -> None:
    first = sample.ok(10.0, regime)
    for later in (sample.ok(5.0, regime), sample.ok(20.0, regime), sample.failed(regime=regime)):
        for measurement in (first, later):
            store.record_measurement(measurement, run=run, nodes=(leaf(sample),))
        assert known(store, sample, regime) == replace(first, cached=True)


@REGIMES
def test_a_success_replaces_a_failure_and_the_first_failure_stays(store: Store, run: str, sample, regime) -> None:
    first = sample.failed("hung", FailureKind.HANG, regime)
    store.record_measurement(first, run=run)
    store.record_measurement(sample.failed("crashed", FailureKind.CRASH, regime), run=run)
    assert known(store, sample, regime) == replace(first, cached=True)
    store.record_measurement(sample.ok(7.0, regime), run=run)
    assert known(store, sample, regime) == replace(sample.ok(7.0, regime), cached=True)


@REGIMES
def test_what_was_not_measured_now_is_not_recorded(store: Store, run: str, sample, regime: Regime) -> None:
    missing = replace(sample.ok(regime=regime), status=Status.NOT_RECORDED, timing=None)
    for measurement in (missing, replace(sample.ok(regime=regime), cached=True)):
        store.record_measurement(measurement, run=run, nodes=(leaf(sample),))
    assert known(store, sample, regime) is None


def test_the_regimes_do_not_mix(store: Store, run: str, sample) -> None:
    store.record_measurement(sample.ok(10.0), run=run, nodes=(leaf(sample),))
    assert known(store, sample, Regime.DEPLOY) is None
    store.record_measurement(sample.ok(9.0, Regime.DEPLOY), run=run, nodes=(leaf(sample, visits=1),))
    assert (known(store, sample, Regime.RANKING).us, known(store, sample, Regime.DEPLOY).us) == (10.0, 9.0)
    assert store.schedules(sample.matmul.key, sample.context.key) == (sample.schedule(),)


def test_a_deploy_time_outlives_later_visits_of_its_node(store: Store, run: str, sample) -> None:
    store.record_measurement(sample.ok(9.0, Regime.DEPLOY), run=run, nodes=(leaf(sample),))
    later = store.start_run(sample.run_info())
    store.record_nodes(later, (leaf(sample, visits=3, best_us=10.0),))
    assert known(store, sample, Regime.DEPLOY).us == 9.0


def test_a_row_that_names_an_unknown_kernel_leaves_nothing_behind(store: Store, run: str, sample) -> None:
    stranger = replace(sample.ok(), kernel_key="0" * 24)
    with pytest.raises(StoreError):
        store.record_measurement(stranger, run=run, nodes=(leaf(sample, visits=1, best_us=10.0),))
    assert [type(event).__name__ for event in store.events_of(run)] == ["RunStarted", "StateChanged"]
    store.record_measurement(sample.ok(), run=run)


def test_hostile_texts_are_data(store: Store, sample) -> None:
    evil = "'); DROP TABLE run; --\x00[red]\udc80%s ?"
    store.record_context(replace(sample.context, gpu=evil, driver=evil))
    store.record_context(sample.context)
    store.record_kernel(sample.matmul)
    run = store.start_run(replace(sample.run_info(), target=evil, device=evil, command=evil, author=evil, prior=evil))
    store.record_kernel(sample.relu)
    grouping = store.record_grouping(run, sample.grouping)
    store.score_grouping(grouping, None, evil)
    store.record_events(run, (StateChanged(at=1.0, state="paused", reason=evil),))
    store.record_nodes(run, (NodeRecord(evil[:20], "", "", {"'; --": evil[:-8]}, evil, 0, 1.0),))
    store.record_measurement(sample.failed(evil), run=run)
    store.end_run(run, RunState.FAILED)
    safe = evil.replace("\udc80", "\\udc80")
    (stored,) = store.runs()
    assert (stored.target, stored.command, stored.author) == (safe, safe, safe)
    assert store.recorded_groupings(run)[0].reason == safe
    assert store.failures()[0].example == safe
    assert len(list(store.events_of(run))) > 3
    assert [row.ok + row.failed for row in store.variants(evil[:-4])] == []


def test_a_context_keeps_its_chip(store: Store, sample) -> None:
    chip = Target(capability=120, multiprocessors=170)
    store.record_context(sample.context)
    assert store.target(sample.context.key) == Target()
    store.record_context(sample.context, chip)
    store.record_context(sample.context)
    assert store.target(sample.context.key) == chip
    assert store.contexts() == (sample.context,)


def test_only_the_last_health_is_kept(store: Store, run: str) -> None:
    reports = [Health(at=at, search_share=0.1, gpu_idle_share=at, compiling=0, respawns=0) for at in (1.0, 2.0, 3.0)]
    for report in reports:
        store.record_events(run, (report,))
    assert [event for event in store.events_of(run) if isinstance(event, Health)] == reports[-1:]


def test_of_several_visits_that_are_written_together_the_last_one_counts(store: Store, run: str) -> None:
    opened = [
        NodeOpened(at=1.0, node=name, parent="", kernel="", label=name, prior=0.5, depth=0) for name in ("one", "two")
    ]
    visits = [
        NodeVisited(at=2.0, node=name, visits=count, best_us=9.0 - count, state=NodeState.MEASURED)
        for count in (1, 2, 3)
        for name in ("one", "two")
    ]
    store.record_events(run, [opened[0], visits[0], opened[1], *visits[1:]])
    told = list(store.events_of(run))
    assert [event.node for event in told if isinstance(event, NodeOpened)] == ["one", "two"]
    last = {event.node: (event.visits, event.best_us) for event in told if isinstance(event, NodeVisited)}
    assert last == {"one": (3, 6.0), "two": (3, 6.0)}


def test_schedule_keys_are_canonical_json() -> None:
    knobs = {"B": True, "A": 1, "D": 'te"xt\n', "C": "1"}
    assert Schedule.of(knobs).key == json.dumps(knobs, sort_keys=True, separators=(",", ":"))
    assert Schedule.of({"A": 1}).key != Schedule.of({"A": True}).key


def test_node_keys_are_the_same_for_everyone() -> None:
    one = node_key("context", "kernel", {"A": 1, "B": True})
    assert one == node_key("context", "kernel", {"B": True, "A": 1})
    assert one == "a4ee11ca36a263097ac36e32"
    others = {
        node_key("context", "kernel", {"A": 1, "B": 1}),
        node_key("context", "kernel", {"A": 1}),
        node_key("context", "other", {"A": 1, "B": True}),
        node_key("other", "kernel", {"A": 1, "B": True}),
        node_key("context", "kernel", Schedule.of({"A": "1", "B": True}).as_dict()),
    }
    assert len(others | {one}) == 6
