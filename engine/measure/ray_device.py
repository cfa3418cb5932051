"""The GPUs of a Ray cluster as devices: each is an actor that owns one GPU, and its loss is a DeviceError.

Ray starts the actors, carries values and says who died; it schedules nothing here. What is asked of a lost device is
asked of another one by whoever holds several, so an actor never restarts and a call is never retried behind our back:
nothing is measured twice. The database stays where the run was started.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from engine import __version__
from engine.extras import install_text
from engine.ir.graph import Graph
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure.device import AssembledResult, Device, DeviceError, PairedTimes, Schedules
from engine.measure.health import DeviceHealth
from engine.measure.ray_actor import Hello, RayGpu
from engine.vocabulary import Context, Measurement, Regime, Schedule, Target

RAY_PREFIX = "ray:"
START_LIMIT_S = 180.0
"""How long a GPU of the cluster may take to be there: a process, its imports, the driver."""
CLOSE_LIMIT_S = 10.0
KNOCK_LIMIT_S = 5.0
HEALTH_LIMIT_S = 0.3
"""A machine that answers late must not hold the run: its last health is told again."""
NUMBERS_APART = 4096
"""Compiles are numbered by each machine for itself; this keeps the numbers of up to so many machines apart."""


def ray_missing() -> str:
    """Why no cluster can be used here, as a sentence; "" where Ray is installed."""
    if find_spec("ray") is not None:
        return ""
    return f"ray is not installed; {install_text('cluster')} adds what tuning on many machines needs"


def open_ray(address: str, open_one: Callable[..., Device], jobs: int | None = None) -> list[Device]:
    """A device for each free GPU of the cluster at `address` ("auto" finds one that runs on this machine).

    `open_one` is called beside each GPU, with `jobs` compile processes (default: the machine's cores over its GPUs).
    Raises DeviceError where there is no Ray, no cluster, no GPU, or another version of this package.
    """
    if missing := ray_missing():
        raise DeviceError(f"--ray can't be used: {missing}")
    cluster = _Cluster(address)
    started: list[RayDevice] = []
    try:
        for place in cluster.places():
            actor = cluster.start(place, open_one, jobs or place.jobs)
            started.append(RayDevice(cluster, actor, place.name, len(started)))
        if not started:
            raise DeviceError(f"the Ray cluster at {address} has no GPU; start its nodes with `ray start --num-gpus N`")
        deadline = time.monotonic() + START_LIMIT_S
        reasons = [device.greet(deadline) for device in started]
        ready = [device for device, reason in zip(started, reasons, strict=True) if not reason]
        if not ready:
            raise DeviceError(f"no GPU of the Ray cluster at {address} can be used: {reasons[0]}")
        for device in started:
            if device not in ready:
                device.close()
        return list(ready)
    except BaseException:
        for device in started:
            device.close()
        cluster.leave_if_unused()
        raise


@dataclass(frozen=True, slots=True)
class Place:
    """One GPU of one node: `name` is for people; `jobs` is its share of the node's cores."""

    node: str
    name: str
    jobs: int


class _Cluster:
    """The connection to a cluster; it ends with the last device, if it was made here."""

    def __init__(self, address: str) -> None:
        """Raises DeviceError when nothing answers there."""
        import ray

        self._ray: Any = ray
        self._lock = threading.Lock()
        self._users = 0
        self._ours = not ray.is_initialized()
        if not self._ours:
            return
        try:
            _knock(address)
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError, OSError, ray.exceptions.RayError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise DeviceError(f"no Ray cluster answers at {address}: {reason}") from None

    @property
    def errors(self) -> type[Exception]:
        found: type[Exception] = self._ray.exceptions.RayError
        return found

    def places(self) -> list[Place]:
        """Each GPU of each node that lives, in an order that does not depend on who joined first."""
        found = []
        nodes = sorted(self._ray.nodes(), key=lambda node: (str(node["NodeManagerAddress"]), str(node["NodeID"])))
        for number, node in enumerate(node for node in nodes if node["Alive"]):
            count = int(node["Resources"].get("GPU", 0))
            jobs = max(1, int(node["Resources"].get("CPU", 1)) // max(count, 1))
            host = str(node["NodeManagerAddress"])
            found += [Place(str(node["NodeID"]), f"{host}#{number}/gpu:{gpu}", jobs) for gpu in range(count)]
        return found

    def start(self, place: Place, open_one: Callable[..., Device], jobs: int) -> Any:
        """An actor beside the GPU. It is not waited for."""
        strategy = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(place.node, soft=False)
        remote = self._ray.remote(RayGpu).options(
            num_gpus=1, num_cpus=0, max_restarts=0, max_task_retries=0, scheduling_strategy=strategy
        )
        with self._lock:
            self._users += 1
        return remote.remote(open_one, jobs)

    def answer(self, reference: Any, limit_s: float) -> Any:
        """What a call came to. Raises TimeoutError and what Ray raises for a loss or for an error over there."""
        try:
            return self._ray.get(reference, timeout=max(0.0, limit_s))
        except self._ray.exceptions.GetTimeoutError:
            raise TimeoutError from None

    def end(self, actor: Any) -> None:
        """Close the actor's device, wait a little for it, and end the actor."""
        with suppress(self.errors, TimeoutError):
            self.answer(actor.close.remote(), CLOSE_LIMIT_S)
        with suppress(Exception):
            self._ray.kill(actor, no_restart=True)
        with self._lock:
            self._users -= 1
        self.leave_if_unused()

    def leave_if_unused(self) -> None:
        with self._lock:
            leave = self._ours and self._users == 0
            self._ours = self._ours and not leave
        if leave:
            self._ray.shutdown()


def _knock(address: str) -> None:
    """Raises OSError where nothing listens: Ray itself would try for minutes. ValueError for what is no address."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal() and "/" not in host):
        raise ValueError("an address is that of the cluster's head, such as 10.0.0.1:6379, or auto")
    socket.create_connection((host, int(port)), KNOCK_LIMIT_S).close()


class RayDevice:
    """Implements `Device` at an actor. It is of no use before `greet` has said that it is."""

    def __init__(self, cluster: _Cluster, actor: Any, name: str, number: int) -> None:
        self.name = name
        self._cluster = cluster
        self._actor = actor
        self._number = number
        self._lock = threading.Lock()
        self._pending: set[Future[Measurement]] = set()
        self._closed = False
        self._hello: Hello | None = None
        self._health = DeviceHealth()
        self._asked: Any = None

    def __enter__(self) -> RayDevice:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def greet(self, deadline: float) -> str:
        """Wait for the device over there until the deadline (monotonic s); "" if it can be used, else why it can't."""
        try:
            hello: Hello = self._cluster.answer(self._actor.hello.remote(), deadline - time.monotonic())
        except TimeoutError:
            return f"{self.name}: it was not there within {START_LIMIT_S:.0f} s; is its GPU taken?"
        except self._cluster.errors as error:
            return str(self._lost(error))
        if hello.version != __version__:
            return f"{self.name} has version {hello.version} of this package, and this machine {__version__}"
        self._hello = hello
        return ""

    @property
    def context(self) -> Context:
        return self._greeted().context

    @property
    def target(self) -> Target:
        return self._greeted().target

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        """See `Device.submit`."""
        future: Future[Measurement] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(DeviceError(f"{self.name} is closed"))
                return future
            self._pending.add(future)
        try:
            there: Future[Measurement] = self._actor.measure.remote(kernel, schedule, regime).future()
        except self._cluster.errors as error:
            self._answer(future, self._lost(error))
            return future
        there.add_done_callback(lambda answer: self._arrived(future, answer))
        return future

    def assemble(
        self, grouping: Grouping, schedules: Schedules, program: Graph | None = None, *, pdl: bool = False
    ) -> AssembledResult:
        """See `Device.assemble`."""
        result: AssembledResult = self._wait(lambda: self._actor.assemble.remote(grouping, schedules, program, pdl))
        return result

    def compare(self, kernel: Kernel, schedules: Sequence[Schedule], *, fresh: bool = False) -> PairedTimes:
        """See `Device.compare`."""
        result: PairedTimes = self._wait(lambda: self._actor.compare.remote(kernel, tuple(schedules), fresh))
        return result

    def compare_graphs(
        self, grouping: Grouping, schedules: Sequence[Schedules], program: Graph | None = None, *, pdl: bool = False
    ) -> PairedTimes:
        """See `ComparesGraphs`."""
        result: PairedTimes = self._wait(
            lambda: self._actor.compare_graphs.remote(grouping, tuple(schedules), program, pdl)
        )
        return result

    def health(self) -> DeviceHealth:
        """The latest that the machine over there told, asked for again now."""
        with self._lock:
            if self._closed:
                return self._health
            with suppress(TimeoutError, *(self._cluster.errors,)):
                if self._asked is None:
                    self._asked = self._actor.health.remote()
                found = self._cluster.answer(self._asked, HEALTH_LIMIT_S)
                self._asked, self._health = None, self._named(found)
            return self._health

    def kill_compile(self, number: int) -> bool:
        """See `Device.kill_compile`."""
        own, place = divmod(number, NUMBERS_APART)
        if place != self._number:
            return False
        with suppress(TimeoutError, *(self._cluster.errors,)):
            return bool(self._cluster.answer(self._actor.kill_compile.remote(own), CLOSE_LIMIT_S))
        return False

    def close(self) -> None:
        """See `Device.close`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            pending = list(self._pending)
            self._pending.clear()
        for future in pending:
            future.cancel()
        self._cluster.end(self._actor)

    def _greeted(self) -> Hello:
        if self._hello is None:
            raise DeviceError(f"{self.name} was not greeted")
        return self._hello

    def _wait(self, ask: Callable[[], Any]) -> Any:
        """The answer of a call, however long it takes. Raises DeviceError, CancelledError once it is closed."""
        if self._closed:
            raise CancelledError
        try:
            reference = ask()
            while not self._closed:
                with suppress(TimeoutError):
                    return self._cluster.answer(reference, 1.0)
        except self._cluster.errors as error:
            if not self._closed:
                raise self._lost(error) from None
        raise CancelledError

    def _arrived(self, future: Future[Measurement], answer: Future[Measurement]) -> None:
        """Called in a thread of Ray."""
        error = CancelledError() if answer.cancelled() else answer.exception()
        if error is None:
            self._answer(future, answer.result())
        else:
            self._answer(future, self._lost(error))

    def _answer(self, future: Future[Measurement], answer: Measurement | DeviceError) -> None:
        with self._lock:
            self._pending.discard(future)
        with suppress(InvalidStateError):
            if isinstance(answer, DeviceError):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _lost(self, error: BaseException) -> DeviceError:
        """What Ray says of a device that is gone, in one sentence."""
        cause = getattr(error, "cause", None)
        if isinstance(cause, DeviceError):
            return DeviceError(str(cause))
        if isinstance(error, DeviceError):
            return DeviceError(str(error.args[0]) if error.args else "the device is gone")
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return DeviceError(f"its actor is gone: {type(error).__name__}{f', {lines[0]}' if lines else ''}")

    def _named(self, health: DeviceHealth) -> DeviceHealth:
        """Over there every device is the first one; here it has the name of its place."""
        apart = self._number
        return replace(
            health,
            states=tuple((self.name, state) for _, state in health.states),
            missing=tuple(f"{self.name}: {reason}" for reason in health.missing),
            compiles=tuple(replace(one, number=one.number * NUMBERS_APART + apart) for one in health.compiles),
            workers=tuple(replace(one, device=self.name) for one in health.workers),
            respawned=tuple(replace(one, device=self.name) for one in health.respawned),
        )
