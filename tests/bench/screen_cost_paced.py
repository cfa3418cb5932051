"""A GPU for the tests of `screen_cost`: the benchmark process of a fake device, which takes its time, one by one.

As a module it is a tuner's process with such a device and a matmul.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from typing import NoReturn

from engine.ir.kernel import Kernel
from engine.vocabulary import Measurement, Regime, Schedule
from tests.bench import screen_cost_engine
from tests.tune.fake_device import FakeDevice
from tests.tune.rig import matmul_program


class PacedDevice(FakeDevice):
    """Answers one request after the other, each after about `run_s` in which the tuner's process is free."""

    def __init__(self, run_s: float) -> None:
        super().__init__()
        self._run_s = run_s
        self._random = random.Random(0)
        self._asked: queue.SimpleQueue[tuple[Future[Measurement], Measurement] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="paced", daemon=True)
        self._thread.start()

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        answer: Future[Measurement] = Future()
        self._asked.put((answer, super().submit(kernel, schedule, regime).result()))
        return answer

    def close(self) -> None:
        super().close()
        self._asked.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (asked := self._asked.get()) is not None:
            answer, measurement = asked
            run_s = self._run_s * self._random.lognormvariate(0.0, 0.1)
            time.sleep(run_s)
            if answer.set_running_or_notify_cancel():
                answer.set_result(replace(measurement, run_s=run_s))


def main(read_fd: int, write_fd: int, parent: int) -> NoReturn:
    """`screen_cost_engine` with such a device and a matmul."""
    screen_cost_engine.main(
        read_fd, write_fd, parent, lambda order: PacedDevice(order.run_s), lambda code: matmul_program()
    )
