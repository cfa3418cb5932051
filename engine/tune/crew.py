"""Kernels wait here for a device: threads, one for each kernel at a time, take them in the order asked for.

The order, the window of groupings ahead and each kernel's search are the same however many devices there are and
however many kernels each of them tunes at a time, and so are the results.

While every answer comes from the database there is nothing to wait for, and threads would only take the interpreter
from each other: until the device is asked for something, one of them tunes alone, and processes walk ahead of it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from types import TracebackType

from engine.ir.kernel import Kernel
from engine.measure import Device, DeviceError
from engine.tune.control import Stopped
from engine.tune.devices import Fleet
from engine.tune.kernel import KernelResult, tune_kernel
from engine.tune.problem import Problem
from engine.tune.workbench import Workbench

LOOK_S = 0.1
"""How often a thread that waits for a kernel looks for a request of a person, in seconds."""


class Crew:
    """Tunes each kernel that it is asked for once. A context manager: leaving ends what still runs and waits for it."""

    def __init__(self, bench: Workbench, problem: Problem) -> None:
        self._bench = bench
        self._problem = problem
        self._results: dict[str, Future[KernelResult]] = {}
        self._waiting: queue.SimpleQueue[tuple[Kernel, Future[KernelResult]] | None] = queue.SimpleQueue()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(number > 0,), name=f"emmy-kernels-{number}", daemon=True)
            for number in range(bench.devices * bench.kernels_per_device)
        ]

    def __enter__(self) -> Crew:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._bench.measuring.set()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        if self._bench.walkers is not None:
            self._bench.walkers.close()

    def start(self, kernel: Kernel) -> None:
        """Tune the kernel as soon as a device is free, unless it was asked for before."""
        if kernel.key not in self._results:
            future: Future[KernelResult] = Future()
            self._results[kernel.key] = future
            if self._bench.walkers is not None:
                self._bench.walkers.start(kernel.key, self._bench.patience(kernel), self._bench.prior.version)
            self._waiting.put((kernel, future))

    def result(self, kernel: Kernel) -> KernelResult:
        """Wait for the kernel. Raises Stopped on a stop, DeviceError when no device is left, StoreError."""
        future = self._results[kernel.key]
        while True:
            try:
                return future.result(timeout=LOOK_S)
            except TimeoutError:
                if future.done():
                    raise
                self._bench.checkpoint()
            except DeviceError:
                if self._bench.control.aborted:
                    raise Stopped from None
                raise

    def _work(self, beside: bool) -> None:
        """What one thread does; the ones `beside` the first begin when something is measured."""
        if beside:
            self._bench.measuring.wait()
        while (job := self._waiting.get()) is not None:
            kernel, future = job
            try:
                if self._ended.is_set():
                    raise Stopped
                with _device_for_one_kernel(self._bench.device) as device:
                    bench = self._bench.at(device, self._ended)
                    future.set_result(self._walked(bench, kernel) or tune_kernel(bench, self._problem, kernel))
            except BaseException as error:
                future.set_exception(error)

    def _walked(self, bench: Workbench, kernel: Kernel) -> KernelResult | None:
        """What a walker found of the kernel, told as this run's own; None where the run has to search itself."""
        if bench.walkers is None:
            return None
        patience = bench.patience(kernel)
        walk = bench.walkers.walk(kernel.key)
        with bench.tally.searching():
            while not wait((walk,), LOOK_S).done:
                bench.checkpoint()
        walked = walk.result()
        if walked is None or bench.patience(kernel) != patience:
            return None
        for event in walked.events:
            bench.tell_event(event)
        bench.tally.count_walked(walked)
        bench.recorder.repeat(walked.nodes)
        bench.checkpoint()
        bench.learn(kernel)
        return walked.result


@contextmanager
def _device_for_one_kernel(device: Device) -> Iterator[Device]:
    if isinstance(device, Fleet):
        with device.lease() as lease:
            yield lease
    else:
        yield device
