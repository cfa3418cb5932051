"""Following a database shows the run that wrote it: both feeds fold to the same snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.events import (
    Assembled,
    CandidateStarted,
    Event,
    GroupingEntered,
    GroupingScored,
    Health,
    KernelFinished,
    KernelFound,
    KernelStarted,
    KernelState,
    Logged,
    Measured,
    NodeOpened,
    NodeState,
    NodeVisited,
    RunFinished,
    RunStarted,
    RunState,
    StateChanged,
)
from engine.snapshot import Snapshot, apply
from engine.store import NodeRecord, Store, follow, node_key
from engine.store.follow import RunReader
from engine.vocabulary import FailureKind, Measurement, Regime, Status

FAILED, OK, FAST, CACHED = "failed", "ok", "fast", "cached"


class LiveRun:
    """Emits and records what a tuning run does, in its order; `snapshot` is what its own screen shows."""

    def __init__(self, store: Store, sample, clock: Iterator[float], *, batched: bool = False) -> None:
        self.store, self.sample, self.clock, self.batched = store, sample, clock, batched
        self.told: list[Event] = []
        self.run = sample.begin(store)
        self.snapshot = Snapshot()
        self.trial = 0
        self.visits: dict[str, tuple[int, float | None]] = {}
        self.opened: set[str] = set()
        info = sample.run_info()
        self.tell(
            RunStarted, run=self.run, target=info.target, device=info.device, gpu=info.gpu, seed=1, patience=50,
            prior="cold", database="tune.db",
        )  # fmt: skip
        self.tell(StateChanged, state=RunState.RUNNING)

    def tell(self, kind: type[Event], **values) -> None:
        event = kind(at=next(self.clock), **values)
        apply(self.snapshot, event)
        self.told.append(event)
        if not self.batched:
            self.write()

    def write(self) -> None:
        self.store.record_events(self.run, self.told)
        self.told = []

    def enter(self) -> str:
        grouping = self.sample.grouping
        name = self.store.record_grouping(self.run, grouping)
        for kernel, times in grouping.kernel_counts().values():
            self.tell(
                KernelFound, kernel=kernel.key, label=kernel.label, family=kernel.family, shape=kernel.shape_text,
                count=times, flops=kernel.flops, bytes_moved=kernel.bytes_moved,
            )  # fmt: skip
        counts = grouping.kernel_counts()
        self.tell(
            GroupingEntered, grouping=name, decisions=("FUSE=False",), kernels=tuple(counts),
            counts=tuple(times for _, times in counts.values()),
        )  # fmt: skip
        return name

    def lineage(self, warps: int, block: int) -> list[NodeRecord]:
        kernel, prefix, parent, nodes = self.sample.matmul.key, {}, "", []
        for depth, knob in enumerate([{}, {"BLOCK_M": block}, {"NUM_WARPS": warps}]):
            prefix = {**prefix, **knob}
            key = node_key(self.sample.context.key, kernel, prefix)
            visits, best_us = self.visits.get(key, (0, None))
            label = " ".join(f"{name}={value}" for name, value in knob.items())
            nodes.append(
                NodeRecord(key, parent, kernel, prefix, label, depth, 0.5, visits, best_us, is_leaf=depth == 2)
            )
            parent = key
        return nodes

    def open(self, nodes: list[NodeRecord]) -> None:
        for node in nodes:
            if node.node not in self.opened:
                self.opened.add(node.node)
                self.tell(
                    NodeOpened, node=node.node, parent=node.parent, kernel=node.kernel_key, label=node.label,
                    prior=node.prior, depth=node.depth,
                )  # fmt: skip

    def candidate(self, warps: int, block: int, outcome: str, us: float) -> None:
        for sibling in (1, 32):
            self.open(self.lineage(sibling, block)[:3])
        self.open(self.lineage(warps, block))
        leaf = self.lineage(warps, block)[-1].node
        self.tell(CandidateStarted, kernel=self.sample.matmul.key, node=leaf, schedule="")
        measurement = self.measurement(warps, block, outcome, us)
        self.trial += 1
        best = measurement.us is not None and measurement.us < (self.visits.get("", (0, None))[1] or 1e9)
        for node in (*self.lineage(warps, block), NodeRecord("", "", "", {}, "", 0, 1.0)):
            visits, best_us = self.visits.get(node.node, (0, None))
            self.visits[node.node] = visits + 1, min((t for t in (best_us, measurement.us) if t), default=None)
        self.record(measurement, self.trial, leaf, self.touched(warps, block), best=best)
        if best:
            deploy = replace(measurement, regime=Regime.DEPLOY)
            self.record(deploy, 0, leaf, self.touched(warps, block)[-1:], best=True)

    def touched(self, warps: int, block: int) -> list[NodeRecord]:
        nodes = self.lineage(warps, block)
        state = NodeState.FAILED if nodes[-1].best_us is None else NodeState.MEASURED
        return [*nodes[:-1], replace(nodes[-1], state=state)]

    def measurement(self, warps: int, block: int, outcome: str, us: float) -> Measurement:
        knobs = {"NUM_WARPS": warps, "BLOCK_M": block}
        if outcome == FAILED:
            return self.sample.failed(f"hung at {us}", FailureKind.HANG, **knobs)
        measurement = self.sample.ok(us / 2 if outcome == FAST else us, **knobs)
        return replace(measurement, cached=outcome == CACHED)

    def record(self, measurement: Measurement, trial: int, leaf: str, nodes: list[NodeRecord], *, best: bool) -> None:
        self.store.record_measurement(measurement, run=self.run, trial=trial, nodes=nodes)
        failure, timing = measurement.failure, measurement.timing
        self.tell(
            Measured, kernel=measurement.kernel_key, node=leaf, schedule=str(measurement.schedule),
            regime=measurement.regime, status=measurement.status, trial=trial, us=measurement.us,
            low_us=timing.low_us if timing else None, high_us=timing.high_us if timing else None,
            failure=failure.kind if failure else "", cause=failure.cause if failure else "",
            cached=measurement.cached, best=best,
        )  # fmt: skip
        for node in nodes:
            self.tell(NodeVisited, node=node.node, visits=node.visits, best_us=node.best_us, state=node.state)

    def finish(self, name: str) -> None:
        key = self.sample.matmul.key
        best_us = self.visits.get("", (0, None))[1]
        self.tell(KernelFinished, kernel=key, state=KernelState.DONE, reason="patience", best_us=best_us)
        self.store.score_grouping(name, best_us, "because")
        self.tell(GroupingScored, grouping=name, sum_us=best_us, reason="because")
        self.store.record_assembled(name, None)
        self.tell(Assembled, grouping=name, sum_us=best_us or 0.0, assembled_us=12.0, error=1e-3)
        self.tell(Health, search_share=0.1, gpu_idle_share=0.2, compiling=0, respawns=0)
        self.tell(Logged, level="info", text="done")
        summary = RunFinished(
            at=next(self.clock), measured=1, cached=2, failed=3, best_us=best_us, sum_us=best_us, assembled_us=12.0,
            search_share=0.1, gpu_idle_share=0.2, wall_s=9.0,
        )  # fmt: skip
        self.write()
        self.store.end_run(self.run, RunState.FINISHED, json.dumps(asdict(summary)))
        for event in (StateChanged(at=next(self.clock), state=RunState.FINISHED), summary):
            apply(self.snapshot, event)


def fold(events) -> Snapshot:
    snapshot = Snapshot()
    for event in events:
        apply(snapshot, event)
    return snapshot


def shown(snapshot: Snapshot) -> dict[str, object]:
    """What both feeds must agree on; of a log, the order and the texts of what was measured."""
    return {
        "run": snapshot.run,
        "state": snapshot.state,
        "kernels": snapshot.kernels,
        "nodes": {key: row for key, row in snapshot.nodes.items()},
        "roots": snapshot.roots,
        "groupings": snapshot.groupings,
        "counts": (snapshot.measured, snapshot.cached, snapshot.failed),
        "current": (snapshot.current_kernel, snapshot.current_grouping),
        "health": snapshot.health,
        "finished": snapshot.finished,
        "log": [event for event in snapshot.log if isinstance(event, Measured | Assembled | Logged)],
    }


CANDIDATES = st.lists(
    st.tuples(
        st.sampled_from((1, 2, 4, 8)),
        st.sampled_from((16, 64)),
        st.sampled_from((FAILED, OK, FAST, CACHED)),
        st.floats(2.0, 1e6),
    ),
    max_size=12,
)


def play(live: LiveRun, candidates, between=lambda: None) -> None:
    name = live.enter()
    live.tell(KernelStarted, kernel=live.sample.matmul.key, patience=50)
    for candidate in candidates:
        live.candidate(*candidate)
        live.write()
        between()
    live.finish(name)


@settings(max_examples=40)
@given(candidates=CANDIDATES, batched=st.booleans())
def test_the_rows_of_a_run_fold_to_what_its_screen_showed(sample, tmp_path_factory, candidates, batched) -> None:
    path = tmp_path_factory.mktemp("follow") / "tune.db"
    with Store.open(path) as store:
        live = LiveRun(store, sample, map(float, count(1)), batched=batched)
        play(live, candidates)
    with Store.open(path, read_only=True) as reader:
        assert shown(fold(reader.events_of(live.run))) == shown(live.snapshot)


@settings(max_examples=25)
@given(
    first=CANDIDATES,
    second=CANDIDATES,
    pauses=st.lists(st.booleans(), min_size=12, max_size=12),
    batched=st.booleans(),
)
def test_following_while_it_is_written_ends_the_same(sample, tmp_path_factory, first, second, pauses, batched) -> None:
    """A second run over the same nodes, read at any moment in between, and the first run's history after it."""
    path = tmp_path_factory.mktemp("follow") / "tune.db"
    with Store.open(path) as store, Store.open(path, read_only=True) as reader:
        clock = map(float, count(1))
        earlier = LiveRun(store, sample, clock)
        play(earlier, first)
        live = LiveRun(store, sample, clock, batched=batched)
        followed = Snapshot()
        reading = RunReader(reader._connection, live.run)
        look = iter(pauses)

        def read_on() -> bool:
            events, ended = reading.news()
            for event in events:
                apply(followed, event)
            return ended

        play(live, second, lambda: next(look) and read_on())
        assert read_on()
        assert shown(followed) == shown(live.snapshot)

        again = fold(reader.events_of(earlier.run))
        assert again.kernels == earlier.snapshot.kernels
        assert again.groupings == earlier.snapshot.groupings
        measured = {event.node for event in earlier.snapshot.log if isinstance(event, Measured)}
        assert measured <= set(again.nodes) <= set(earlier.snapshot.nodes)
        leaves = [(again.nodes[key].best_us, again.nodes[key].parent) for key in sorted(measured)]
        assert leaves == [
            (earlier.snapshot.nodes[key].best_us, earlier.snapshot.nodes[key].parent) for key in sorted(measured)
        ]


@settings(max_examples=25)
@given(first=CANDIDATES, second=CANDIDATES, size=st.integers(1, 12), at_once=st.booleans())
def test_read_in_slices_a_run_folds_to_the_same(sample, tmp_path_factory, first, second, size, at_once) -> None:
    """Also an older one, whose nodes a newer run took over."""
    path = tmp_path_factory.mktemp("follow") / "tune.db"
    with Store.open(path) as store, Store.open(path, read_only=True) as reader:
        clock = map(float, count(1))
        lives = [LiveRun(store, sample, clock) for _ in range(2)]
        for live, candidates in zip(lives, (first, second), strict=True):
            play(live, candidates)
        for live in lives:
            whole = list(reader.events_of(live.run))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(follow, "SLICE", size)
                parts = reader.follow(live.run, stop=lambda: False) if at_once else reader.events_of(live.run)
                sliced = list(parts)
            assert shown(fold(sliced)) == shown(fold(whole))
            assert fold(sliced).nodes == fold(whole).nodes
            assert sorted(map(repr, sliced)) == sorted(map(repr, whole))


def test_no_more_than_a_slice_is_taken_at_once(store: Store, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many changes wait: a reader of a million of them takes no more room."""
    monkeypatch.setattr(follow, "SLICE", 7)
    told = [Logged(at=float(place), level="info", text=str(place)) for place in range(100)]
    store.record_events(run, told)
    reading, found = RunReader(store._connection, run), []
    while True:
        events, ended = reading.news()
        logged = [event for event in events if isinstance(event, Logged)]
        assert len(logged) <= 7
        assert not ended
        found += logged
        if not reading.behind:
            break
    assert found == told
    assert reading.news() == ([], False)


def test_a_run_without_a_journal_still_has_a_beginning_and_an_end(store: Store, run: str, sample) -> None:
    store.record_measurement(sample.ok(), run=run, nodes=())
    running = fold(store.events_of(run))
    assert (running.run.run, running.run.target, running.state) == (run, "torch.matmul(x, y)", "running")
    store.end_run(run, RunState.STOPPED)
    stopped = fold(store.events_of(run))
    assert (stopped.state, stopped.finished) == ("stopped", None)


def test_following_nothing_waits_for_the_first_run(path: Path, store: Store, sample) -> None:
    looks = count()

    def stop() -> bool:
        look = next(looks)
        if look == 2:
            run = sample.begin(store)
            store.end_run(run, RunState.FINISHED)
        return look > 50

    with Store.open(path, read_only=True) as reader:
        events = list(reader.follow(poll_s=0, stop=stop))
    assert [type(event).__name__ for event in events] == ["RunStarted", "StateChanged"]
    assert next(looks) < 10


def test_following_stops_when_asked(path: Path, store: Store, run: str) -> None:
    looks = count()
    with Store.open(path, read_only=True) as reader:
        events = list(reader.follow(run, poll_s=0, stop=lambda: next(looks) > 3))
    assert [event.state for event in events if isinstance(event, StateChanged)] == ["running"]


def test_a_quiet_database_is_not_read_again(
    path: Path, store: Store, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = count()
    statements: list[str] = []
    with Store.open(path, read_only=True) as reader:
        reader._connection.db.conn.set_trace_callback(statements.append)
        list(reader.follow(run, poll_s=0, stop=lambda: next(looks) > 20))
    assert sum("data_version" in statement for statement in statements) == 21
    assert sum("FROM node" in statement for statement in statements) == 1


def test_what_is_recorded_as_not_recorded_is_a_trial_too(store: Store, run: str, sample) -> None:
    live = LiveRun(store, sample, map(float, count(1)))
    missing = replace(sample.ok(), status=Status.NOT_RECORDED, timing=None)
    nodes = live.lineage(4, 64)
    live.open(nodes)
    live.record(missing, 1, nodes[-1].node, nodes, best=False)
    assert shown(fold(store.events_of(live.run)))["log"] == shown(live.snapshot)["log"]
    assert store.schedules(sample.matmul.key, sample.context.key) == ()
