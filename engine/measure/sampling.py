"""The engine's end of the sampler: the latest look at the GPU, or the sentence that says why there is none."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from engine.measure.channel import ChannelClosed
from engine.measure.gpu_state import GpuState
from engine.measure.process import Child, Nursery

PERIOD_S = 2.0


class Sampling:
    """Starts the sampler and listens to it in a thread of its own. That it dies or is silent costs no measurement."""

    def __init__(self, nursery: Nursery, command: Sequence[str], device: int, period_s: float = PERIOD_S) -> None:
        self._nursery = nursery
        self._command = tuple(command)
        self._first = {"device": device, "period_s": period_s}
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._closed = False
        self._state: GpuState | None = None
        self._missing = ""
        self._thread = threading.Thread(target=self._listen, name="sampling", daemon=True)
        self._thread.start()

    @property
    def state(self) -> GpuState | None:
        """The latest look; None before the first."""
        return self._state

    @property
    def missing(self) -> str:
        """Why nothing is sampled, as a sentence; "" while all is well."""
        return self._missing

    def close(self) -> None:
        """Kill the sampler and wait until it is buried."""
        with self._lock:
            self._closed = True
            child = self._child
        if child is not None:
            child.kill()
        self._thread.join()

    def _listen(self) -> None:
        """The thread lives as long as the process: the child dies with the thread that started it."""
        try:
            child = self._nursery.start(self._command, "sampler")
        except OSError as error:
            self._missing = f"clocks and temperature are not sampled: {error}"
            return
        with self._lock:
            self._child = child
            if self._closed:
                child.kill()
        try:
            child.channel.send(self._first)
            while not self._missing:
                message = child.channel.receive()
                if "missing" in message:
                    self._missing = str(message["missing"])
                else:
                    self._state = GpuState.from_data(message["state"])
        except (ChannelClosed, KeyError, TypeError, ValueError) as error:
            if not self._closed:
                self._missing = f"clocks and temperature are not sampled any more: {error}"
        self._nursery.bury(child)
