"""Pins: one in force per kernel and context, a history that keeps every act, undo, and how each stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.events import Health
from engine.store import PinChange, Standing, Store, StoreError
from engine.vocabulary import Regime, Schedule, Timing, Verdict

WHO = "ana"


def apart(mine: Timing, other: Timing, noise: float | None) -> Verdict:
    """Told apart by the medians and the floor alone, so that what the store hands over is seen."""
    margin = 0.02 if noise is None else noise
    return Verdict.FASTER if other.median_us * (1 + margin) < mine.median_us else Verdict.WITHIN_NOISE


def schedules_in_force(store: Store) -> list[str]:
    return [stored.pin.schedule.key for stored in store.pins()]


def test_a_pin_keeps_who_when_and_why(path: Path, sample) -> None:
    with Store.open(path, clock=lambda: 1234.5) as store:
        sample.begin(store)
        change = store.record_pin(
            sample.matmul.key, sample.schedule(), sample.context.key, author=WHO, note="steady [b] \x1b"
        )
    with Store.open(path, read_only=True) as store:
        (stored,) = store.pins()
    assert (stored.pin.author, stored.pin.at, stored.pin.note) == (WHO, 1234.5, "steady [b] \x1b")
    assert stored.pin.schedule == sample.schedule()
    assert (stored.id, stored.context_key, stored.removed_at) == (change.pinned, sample.context.key, None)


def test_another_pin_ends_the_first_and_history_keeps_both(store: Store, run: str, sample) -> None:
    where = (sample.matmul.key, sample.context.key)
    first = store.record_pin(where[0], sample.schedule(), where[1], author=WHO)
    second = store.record_pin(where[0], sample.schedule(NUM_WARPS=8), where[1], author="bo")
    assert second.removed == (first.pinned,)
    assert [stored.pin.author for stored in store.pins()] == ["bo"]
    assert [stored.removed_at is None for stored in store.pins(history=True)] == [False, True]


def test_kernels_and_contexts_are_pinned_apart(store: Store, run: str, sample) -> None:
    other = replace(sample.context, gpu="NVIDIA A100")
    store.record_context(other)
    for kernel, context in ((sample.matmul, sample.context), (sample.relu, sample.context), (sample.matmul, other)):
        store.record_pin(kernel.key, sample.schedule(), context.key, author=WHO)
    assert len(store.pins()) == 3


def test_unpinning_nothing_and_unknown_things_are_refused(store: Store, run: str, sample) -> None:
    with pytest.raises(StoreError, match="nothing to unpin"):
        store.unpin(sample.matmul.key, sample.context.key)
    with pytest.raises(StoreError, match="no kernel 'nope'"):
        store.record_pin("nope", sample.schedule(), sample.context.key, author=WHO)
    with pytest.raises(StoreError, match="no context 'nope'"):
        store.record_pin(sample.matmul.key, sample.schedule(), "nope", author=WHO)
    assert store.pins(history=True) == ()


def test_a_reader_pins_nothing(path: Path, store: Store, run: str, sample) -> None:
    with Store.open(path, read_only=True) as reader, pytest.raises(StoreError, match="reading only"):
        reader.record_pin(sample.matmul.key, sample.schedule(), sample.context.key, author=WHO)


def test_an_older_change_is_not_undone_over_a_newer_one(store: Store, run: str, sample) -> None:
    where = (sample.matmul.key, sample.context.key)
    first = store.record_pin(where[0], sample.schedule(), where[1], author=WHO)
    store.record_pin(where[0], sample.schedule(NUM_WARPS=8), where[1], author=WHO)
    with pytest.raises(StoreError, match="changed again since"):
        store.undo_pin(first)
    assert schedules_in_force(store) == [sample.schedule(NUM_WARPS=8).key]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=st.lists(st.sampled_from([1, 2, 4, 8, None]), max_size=8))
def test_undoing_every_act_backwards_restores_every_state(tmp_path_factory, sample, acts) -> None:
    with Store.open(tmp_path_factory.mktemp("pins") / "tune.db") as store:
        sample.begin(store)
        where = (sample.matmul.key, sample.context.key)
        states: list[list[str]] = [[]]
        changes: list[PinChange] = []
        for warps in acts:
            if warps is None and not states[-1]:
                continue
            if warps is None:
                changes.append(store.unpin(*where))
            else:
                changes.append(store.record_pin(where[0], sample.schedule(NUM_WARPS=warps), where[1], author=WHO))
            states.append(schedules_in_force(store))
            assert len(states[-1]) == (0 if warps is None else 1)
        for change, state in zip(reversed(changes), reversed(states[:-1]), strict=True):
            store.undo_pin(change)
            assert schedules_in_force(store) == state


def test_stale_is_what_was_overtaken_or_is_of_another_context(store: Store, run: str, sample) -> None:
    store.record_pin(sample.matmul.key, sample.schedule(NUM_WARPS=4), sample.context.key, author=WHO)
    (found,) = store.pin_standings(apart)
    stale = {standing for standing in Standing if replace(found, standing=standing).stale}
    assert stale == {Standing.FASTER, Standing.OTHER_CONTEXT}


def test_how_a_pin_stands(store: Store, run: str, sample) -> None:
    where = (sample.matmul.key, sample.context.key)
    for measurement in (sample.ok(10.0, NUM_WARPS=4), sample.ok(10.1, NUM_WARPS=8), sample.failed(NUM_WARPS=2)):
        store.record_measurement(measurement, run=run)

    def standing(warps: int) -> tuple[Standing, float | None, float | None]:
        store.record_pin(where[0], sample.schedule(NUM_WARPS=warps), where[1], author=WHO)
        (found,) = store.pin_standings(apart)
        assert (found.label, found.gpu) == ("matmul", "NVIDIA H200")
        return found.standing, found.us, found.gap

    assert standing(4) == (Standing.OK, 10.0, 0.0)
    assert standing(8) == (Standing.OK, 10.1, pytest.approx(0.01))
    assert standing(2) == (Standing.FAILED, None, None)
    assert standing(16) == (Standing.UNMEASURED, None, None)
    assert standing(8) == (Standing.OK, 10.1, pytest.approx(0.01))
    store.record_measurement(sample.ok(8.0, NUM_WARPS=1), run=run)
    (found,) = store.pin_standings(apart)
    assert (found.standing, found.stale, found.us) == (Standing.FASTER, True, 10.1)
    assert found.best_schedule == sample.schedule(NUM_WARPS=1)
    assert standing(8) == (Standing.SLOWER, 10.1, pytest.approx(10.1 / 8.0 - 1))
    (found,) = store.pin_standings(apart)
    assert not found.stale, "who pins what is known to be slower means it"
    other = replace(sample.context, driver="590.0")
    store.record_context(other)
    store.start_run(replace(sample.run_info(), context_key=other.key))
    assert store.pin_standings(apart)[0].standing is Standing.OTHER_CONTEXT


def test_the_floor_that_the_newest_run_measured_tells_a_pin_from_the_best(store: Store, run: str, sample) -> None:
    """Deploy time against deploy time, each with its own samples; 0.5 % apart is more than a floor of 0.2 %."""
    for us, warps in ((10.0, 4), (9.95, 8)):
        store.record_measurement(sample.ok(9.0, NUM_WARPS=warps), run=run)
        store.record_measurement(sample.ok(us, Regime.DEPLOY, NUM_WARPS=warps), run=run)
    store.record_pin(sample.matmul.key, sample.schedule(NUM_WARPS=4), sample.context.key, author=WHO)
    asked: list[tuple[Timing, Timing, float | None]] = []

    def judge(mine: Timing, other: Timing, noise: float | None) -> Verdict:
        asked.append((mine, other, noise))
        return apart(mine, other, noise)

    (found,) = store.pin_standings(judge)
    assert (found.standing, found.noise_share) == (Standing.OK, None)
    store.record_events(
        run, [Health(at=1.0, search_share=0.1, gpu_idle_share=0.1, compiling=0, respawns=0, noise_share=0.002)]
    )
    (found,) = store.pin_standings(judge)
    assert (found.standing, found.noise_share, found.us, found.best_us) == (Standing.SLOWER, 0.002, 10.0, 9.95)
    assert [(mine.median_us, other.samples[0], noise) for mine, other, noise in asked] == [
        (10.0, 9.95, None),
        (10.0, 9.95, 0.002),
    ]
    assert store.context_noise_share("another context") is None


def test_deploy_times_are_compared_with_deploy_times(store: Store, run: str, sample) -> None:
    for us, warps in ((10.0, 4), (9.0, 8)):
        store.record_measurement(sample.ok(us, NUM_WARPS=warps), run=run)
    store.record_measurement(sample.ok(9.9, Regime.DEPLOY, NUM_WARPS=4), run=run)
    store.record_pin(sample.matmul.key, sample.schedule(NUM_WARPS=4), sample.context.key, author=WHO)
    (found,) = store.pin_standings(apart)
    assert (found.us, found.best_us, found.standing) == (9.9, 9.9, Standing.OK)


def test_a_hostile_pin_is_left_out_with_one_sentence(store: Store, run: str, sample) -> None:
    store.record_pin(sample.matmul.key, Schedule.of({"A": 1}), sample.context.key, author=WHO)
    store._connection.db.conn.execute("UPDATE pin SET schedule = '[1, 2'")
    assert store.pins() == store.pin_standings(apart) == ()
    (said,) = store.left_out
    assert "row 1 of table pin can't be read" in said
    assert "\n" not in said
