"""A kind of kernels whose ranking times misled is ranked by deploy times; its rows are ranking rows all the same."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

from engine.measure import DeviceError, ranking_kind
from engine.store import Store
from engine.tune import pairs_of_kinds
from engine.tune.sweeping import misranked_kinds, submit_ranking
from engine.vocabulary import Measurement, Regime, Schedule

from .fake_device import FakeDevice
from .rig import matmul_program, tune_with

SCHEDULE = Schedule.of({"BLOCK": 1})


def test_a_misled_kind_is_timed_as_it_is_deployed(tmp_path: Path) -> None:
    device = FakeDevice()
    tune_with(tmp_path / "t.db", device, matmul_program())
    with Store.open(tmp_path / "t.db") as store:
        kernel = store.kernels()[0]
    device.launches.clear()
    plain = submit_ranking(device, kernel, SCHEDULE, frozenset()).result()
    swept = submit_ranking(device, kernel, SCHEDULE, frozenset({ranking_kind(kernel)})).result()
    assert [regime for _, _, regime in device.launches] == [Regime.RANKING, Regime.DEPLOY]
    assert plain == swept
    assert swept.regime is Regime.RANKING


def test_what_ends_a_measurement_is_passed_on(tmp_path: Path) -> None:
    class Holding(FakeDevice):
        def submit(self, kernel: object, schedule: Schedule, regime: Regime) -> Future[Measurement]:
            self.held: Future[Measurement] = Future()
            return self.held

    tune_with(tmp_path / "t.db", FakeDevice(), matmul_program())
    with Store.open(tmp_path / "t.db") as store:
        kernel = store.kernels()[0]
    device, kinds = Holding(), frozenset({ranking_kind(kernel)})
    lost = submit_ranking(device, kernel, SCHEDULE, kinds)
    device.held.set_exception(DeviceError("it fell off"))
    assert isinstance(lost.exception(), DeviceError)
    closed = submit_ranking(device, kernel, SCHEDULE, kinds)
    device.held.cancel()
    assert closed.cancelled()
    skipped = submit_ranking(device, kernel, SCHEDULE, kinds)
    skipped.cancel()
    assert device.held.cancelled()


def test_a_runs_own_pairs_say_how_ranking_did(tmp_path: Path) -> None:
    device = FakeDevice()
    tune_with(tmp_path / "t.db", device, matmul_program())
    with Store.open(tmp_path / "t.db") as store:
        found = pairs_of_kinds(store, device.context.key)
        assert misranked_kinds(store, device.context.key) == frozenset()
        assert pairs_of_kinds(store, "another context") == {}
    assert found
    assert all(ranking == deploy for pairs in found.values() for of_kernel in pairs for ranking, deploy in of_kernel)
