"""Kernels tuned again from the database alone, the queue behind a run, and what people asked of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.events import Acted, Event, KernelFinished, QueueChanged, RunState
from engine.ir.kernel import Kernel
from engine.measure import Device
from engine.store import Store, StoreError
from engine.tune import Control, Retune, RetuneRequest, Settings, Verb, tune_again
from engine.tune.control import Skipped
from engine.vocabulary import Regime, Schedule, is_kernel_target

from .fake_device import FakeDevice
from .rig import linear_gelu_program, matmul_program, tune_with


class Host:
    """Remembers what it is told, and does something at an event."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings(patience=10)
        self.control = Control("ana")
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def change_state(self, state: RunState, reason: str = "") -> None:
        return None

    def own_device(self, device: Device) -> Device:
        return device


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "t.db"
    tune_with(path, FakeDevice(), matmul_program(), Settings(patience=10))
    return path


def again(path: Path, *wanted: Retune, host: Host | None = None) -> tuple[FakeDevice, Host]:
    device, host = FakeDevice(), host or Host()
    request = RetuneRequest(path, wanted, "fake:0", "", lambda name, jobs: device)
    tune_again(request, host)
    return device, host


def kernel_of(path: Path) -> Kernel:
    with Store.open(path, read_only=True) as store:
        return store.kernels()[0]


def test_a_kernel_is_tuned_again_on_another_path_and_kept_as_a_run_of_its_own(database: Path) -> None:
    kernel = kernel_of(database)
    device, _ = again(database, Retune(kernel.key))
    assert device.launches
    assert device.closed
    assert device.assemblies
    with Store.open(database, read_only=True) as store:
        first, second = store.runs()
        assert second.target == f"kernel {kernel.label or kernel.family} {kernel.key}"
        assert is_kernel_target(second.target)
        assert not is_kernel_target(first.target)
        assert second.seed > first.seed
        assert second.state == RunState.FINISHED
        assert [result.kernel for result in store.run_results(second.id)] == [kernel.key]
        (grouping,) = store.recorded_groupings(second.id)
        assert grouping.sum_us is not None
        (act,) = store.acts(second.id)
        assert (act.verb, act.kernel_key, act.author) == (Verb.RETUNE, kernel.key, "ana")


def test_one_candidate_is_measured_on_demand_in_both_regimes(database: Path) -> None:
    kernel = kernel_of(database)
    with Store.open(database, read_only=True) as store:
        known = store.schedules(kernel.key, store.contexts()[0].key)
    wanted = next(one for one in offered(kernel) if one not in known)
    device, _ = again(database, Retune(kernel.key, wanted))
    assert {(schedule, regime) for _, schedule, regime in device.launches} == {
        (wanted.key, Regime.RANKING),
        (wanted.key, Regime.DEPLOY),
    }


def offered(kernel: Kernel) -> list[Schedule]:
    from engine.codegen import offered_schedules
    from engine.vocabulary import Target

    return list(offered_schedules(kernel, Target()))


def test_what_is_queued_while_a_kernel_is_tuned_is_tuned_after_it(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    tune_with(path, FakeDevice(), linear_gelu_program(), Settings(patience=5))
    with Store.open(path, read_only=True) as store:
        first, second = [kernel.key for kernel in store.kernels()][:2]
    host = Host()
    host.control.enqueue([Retune(second)])
    again(path, Retune(first), host=host)
    ended = [event.kernel for event in host.events if isinstance(event, KernelFinished)]
    assert ended == [second, first]
    assert [event.kernels for event in host.events if isinstance(event, QueueChanged)] == [(first,), ()]
    assert not host.control.enqueue([Retune(first)])


def test_what_is_not_in_the_database_is_named(database: Path) -> None:
    with pytest.raises(StoreError):
        again(database, Retune("nothing"))


class SkipsAfter(Host):
    """Asks to skip the kernel at its `trials`-th measurement, and for more patience before."""

    def __init__(self, kernel: str, trials: int) -> None:
        super().__init__(Settings(patience=10_000))
        self._kernel, self._trials = kernel, trials

    def emit(self, event: Event) -> None:
        super().emit(event)
        if type(event).__name__ == "Measured" and len(self.events) > self._trials:
            self.control.skip(self._kernel)


def test_a_skipped_kernel_ends_with_what_it_has(database: Path) -> None:
    kernel = kernel_of(database).key
    _, host = again(database, Retune(kernel), host=SkipsAfter(kernel, 20))
    (ended,) = [event for event in host.events if isinstance(event, KernelFinished)]
    assert ended.reason == "skipped on request"
    assert ended.best_us is not None
    acts = [event.verb for event in host.events if isinstance(event, Acted)]
    assert acts == [Verb.RETUNE, Verb.SKIP]


def test_less_patience_ends_a_search_sooner(database: Path) -> None:
    kernel = kernel_of(database).key

    def trials(patience: int) -> int:
        host = Host(Settings(patience=40))
        host.control.set_patience(kernel, patience)
        again(database, Retune(kernel), host=host)
        return sum(getattr(event, "trial", 0) > 0 for event in host.events)

    assert trials(5) < trials(60)


def test_nothing_forbidden_is_proposed(database: Path) -> None:
    kernel = kernel_of(database)
    with Store.open(database) as store:
        corner = store.forbid({"NUM_WARPS": 4}, kernel_key=kernel.key, family=kernel.family, author="ana")
        assert store.forbid({"NUM_WARPS": 4}, kernel_key=kernel.key, family=kernel.family, author="bo") == corner
    device, _ = again(database, Retune(kernel.key))
    assert device.launches
    assert not any('"NUM_WARPS":4' in schedule for _, schedule, _ in device.launches)
    with Store.open(database) as store:
        store.allow(corner.id)
        assert store.forbidden() == ()
        assert store.forbidden(history=True)[0].removed_at is not None
        with pytest.raises(StoreError, match="in force"):
            store.allow(corner.id)
        store.forbid_again(corner.id)
        assert store.forbidden()[0] == corner


def test_a_corner_concerns_its_kernel_or_its_family(database: Path) -> None:
    with Store.open(database) as store:
        with pytest.raises(StoreError, match="no knob value"):
            store.forbid({}, kernel_key="k", author="ana")
        with pytest.raises(StoreError, match="neither"):
            store.forbid({"NUM_WARPS": 4}, author="ana")
        wide = store.forbid({"NUM_WARPS": 4}, family="contraction", author="ana")
        assert wide.concerns("any", "contraction")
        assert not wide.concerns("any", "pointwise")
        assert wide.holds({"NUM_WARPS": 4, "BLOCK_M": 16})
        assert not wide.holds({"BLOCK_M": 16})


def test_a_control_says_what_was_asked_once_and_refuses_after_the_end() -> None:
    control = Control("ana")
    control.pause()
    control.pause()
    control.resume()
    control.skip("k")
    control.set_patience("k", 7)
    assert [act.verb for act in control.take_acts()] == [Verb.PAUSE, Verb.RESUME, Verb.SKIP, Verb.PATIENCE]
    assert control.take_acts() == []
    assert (control.patience("k", 50), control.patience("other", 50)) == (7, 50)
    with pytest.raises(Skipped):
        control.check_skip("k")
    control.begin("k")
    control.check_skip("k")
    with pytest.raises(ValueError, match="at least 1"):
        control.set_patience("k", 0)
    assert control.enqueue([Retune("k"), Retune("k")])
    assert control.take() == Retune("k")
    assert control.take() is None
    assert not control.enqueue([Retune("k")])
