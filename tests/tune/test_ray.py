"""A Ray cluster of two nodes finds what one device finds, and an actor that is killed loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.events import Event, Logged, RunFinished
from engine.measure import DeviceError
from engine.measure.ray_device import open_ray, ray_missing
from engine.tune.devices import Fleet
from engine.tune.opening import opened

from .fake_device import FakeDevice
from .fleet_rig import SETTINGS, bests, kept, many_kernels_program, tune_on
from .ray_rig import launches, opener
from .rig import tune_with

pytestmark = [
    pytest.mark.skipif(bool(ray_missing()), reason=ray_missing() or "ray is there"),
    pytest.mark.xdist_group("ray"),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Two nodes on this machine, each with what Ray takes for one GPU."""
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster()
    for _ in range(2):
        cluster.add_node(num_cpus=1, num_gpus=1, object_store_memory=100 << 20)
    cluster.wait_for_nodes()
    yield str(cluster.address)
    cluster.shutdown()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Event], RunFinished]:
    """The run on one device."""
    database = tmp_path_factory.mktemp("alone") / "t.db"
    events: list[Event] = []
    return database, events, tune_on(database, FakeDevice(), events=events)


def _tuned(address: str, folder: Path, database: Path, dies_at: int = 0) -> tuple[list[Event], RunFinished]:
    events: list[Event] = []
    device = opened(opener(folder, dies_at), f"ray:{address}", 1)
    assert isinstance(device, Fleet)
    assert len(device) == 2
    with device:
        summary = tune_with(database, device, many_kernels_program(), SETTINGS, events=events)
        assert device.health().workers == ()
    return events, summary


def _numbers(summary: RunFinished) -> tuple[object, ...]:
    names = ("measured", "cached", "failed", "best_us", "sum_us", "assembled_us")
    return tuple(getattr(summary, name) for name in names)


def test_two_nodes_find_what_one_device_finds(
    address: str, alone: tuple[Path, list[Event], RunFinished], tmp_path: Path
) -> None:
    database, events, summary = alone
    several, found = _tuned(address, tmp_path, tmp_path / "t.db")
    assert bests(several) == bests(events)
    assert _numbers(found) == _numbers(summary)
    assert kept(tmp_path / "t.db") == kept(database)
    each = [set(lines) for lines in launches(tmp_path).values()]
    assert len(each) == 2
    assert not {line.split()[0] for line in each[0]} & {line.split()[0] for line in each[1]}


@pytest.mark.parametrize("dies_at", [1, 30])
def test_an_actor_that_is_killed_hands_its_kernel_on(
    address: str, alone: tuple[Path, list[Event], RunFinished], tmp_path: Path, dies_at: int
) -> None:
    database, events, summary = alone
    several, found = _tuned(address, tmp_path, tmp_path / "t.db", dies_at)
    assert bests(several) == bests(events)
    assert _numbers(found) == _numbers(summary)
    assert kept(tmp_path / "t.db") == kept(database)
    (warning,) = [e.text for e in several if isinstance(e, Logged) and e.level == "warning"]
    assert "is lost (its actor is gone: " in warning
    assert "what it was tuning goes on at " in warning


def test_a_cluster_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(DeviceError, match=r"no Ray cluster answers at 127\.0\.0\.1:1: "):
        open_ray("127.0.0.1:1", opener(Path("unused")))


def test_a_device_that_does_not_open_is_a_sentence(address: str) -> None:
    def refusing(name: str, *, jobs: int | None = None) -> Any:
        raise DeviceError("there is no driver")

    with pytest.raises(DeviceError, match=r"no GPU of the Ray cluster at .* can be used: .*there is no driver"):
        open_ray(address, refusing)
