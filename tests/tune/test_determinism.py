"""The path depends on the seed and the database, not on how many compile processes there are or who is quick."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.events import Event, Measured
from engine.ir.kernel import Kernel
from engine.tune.settings import Settings
from engine.vocabulary import Measurement, Regime, Schedule

from .fake_device import FakeDevice
from .rig import linear_gelu_program, matmul_program, tune_with


class SlowCompilers(FakeDevice):
    """Answers in an order of its own: `compilers` threads, each candidate as slow as a private dice says."""

    def __init__(self, compilers: int, seed: int) -> None:
        super().__init__()
        self._pool = ThreadPoolExecutor(compilers)
        self._dice = random.Random(seed)

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        pause = self._dice.random() * 0.004
        answer = super().submit(kernel, schedule, regime).result()
        return self._pool.submit(self._later, pause, answer)

    def close(self) -> None:
        super().close()
        self._pool.shutdown()

    @staticmethod
    def _later(pause: float, answer: Measurement) -> Measurement:
        threading.Event().wait(pause)
        return answer


@contextmanager
def _slow(compilers: int, seed: int) -> Iterator[SlowCompilers]:
    device = SlowCompilers(compilers, seed)
    try:
        yield device
    finally:
        device.close()


def _path(events: list[Event], regime: Regime) -> list[tuple[str, str]]:
    return [(e.kernel, e.schedule) for e in events if isinstance(e, Measured) and e.regime == regime]


@pytest.mark.parametrize("compilers", [2, 16])
def test_the_path_is_the_same_with_any_number_of_compile_processes(tmp_path: Path, compilers: int) -> None:
    settings = Settings(patience=40)
    expected: list[Event] = []
    tune_with(tmp_path / "one.db", FakeDevice(), linear_gelu_program(), settings, events=expected)
    seen: list[Event] = []
    with _slow(compilers, seed=compilers) as device:
        tune_with(tmp_path / "many.db", device, linear_gelu_program(), settings, events=seen)
    assert len(_path(expected, Regime.RANKING)) > 80
    assert _path(seen, Regime.RANKING) == _path(expected, Regime.RANKING)
    assert set(_path(seen, Regime.DEPLOY)) == set(_path(expected, Regime.DEPLOY))


_OTHER_PROCESS = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.tune.fake_device import FakeDevice
from tests.tune.rig import matmul_program, tune_with
device = FakeDevice()
tune_with(Path(sys.argv[1]), device, matmul_program())
print("\\n".join(key for _, key, _ in device.launches))
"""


@pytest.mark.parametrize("hash_seed", ["0", "77"])
def test_the_path_is_the_same_in_another_process(tmp_path: Path, hash_seed: str) -> None:
    device = FakeDevice()
    tune_with(tmp_path / "here.db", device, matmul_program())
    code = _OTHER_PROCESS.format(root=str(Path(__file__).parents[2]))
    told = subprocess.run(
        [sys.executable, "-P", "-c", code, str(tmp_path / "there.db")],
        env={"PYTHONHASHSEED": hash_seed, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split("\n")[:-1] == [key for _, key, _ in device.launches]


def test_a_seed_is_a_path_of_its_own_and_always_the_same(tmp_path: Path) -> None:
    def path(name: str, seed: int) -> list[str]:
        device = FakeDevice()
        tune_with(tmp_path / f"{name}.db", device, matmul_program(), Settings(patience=20, seed=seed))
        return [key for _, key, regime in device.launches if regime is Regime.RANKING]

    paths = {seed: path(f"first-{seed}", seed) for seed in (0, 1, 2)}
    assert len({tuple(one) for one in paths.values()}) == 3
    assert {seed: path(f"again-{seed}", seed) for seed in paths} == paths
