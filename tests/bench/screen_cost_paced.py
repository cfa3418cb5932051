"""A GPU for the tests of `screen_cost`: the benchmark process of a fake device, which takes its time, one by one."""

from __future__ import annotations

import queue
import random
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from engine.ir.kernel import Kernel
from engine.vocabulary import Measurement, Regime, Schedule
from tests.bench.screen_cost_child import main
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


def run(run_s: float, changes: Mapping[str, Any]) -> int:
    """`screen_cost_child`, with such a device and a matmul; its arguments are those of the command line."""
    return main(sys.argv[1:], lambda name: PacedDevice(run_s), lambda code: matmul_program(), changes)
