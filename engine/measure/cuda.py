"""A CUDA device: candidates compile in parallel and are timed one at a time, whatever each of them does.

The caller's thread renders; the compile pool's threads compile and put what is ready into one queue; one thread owns
the benchmark process and takes candidates from the queue in the order in which their compiles ended.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from engine.codegen import KernelSource, is_generated, with_dependent_launch
from engine.ir.graph import Graph
from engine.ir.json_form import graph_to_json, grouping_to_json, kernel_to_json
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure.channel import ChannelClosed, Message
from engine.measure.compile_pool import CompileLimits, CompileReply
from engine.measure.device import AssembledResult, DeviceError, DeviceHealth, PairedTimes
from engine.measure.link import WatchLimits, WorkerLink
from engine.measure.noise import NoiseFloor, noise_floor
from engine.measure.process import entry_command
from engine.measure.regimes import FINALIST, REGIMES, TURNS, RegimeSettings
from engine.measure.sampling import Sampling
from engine.measure.workshop import Workshop
from engine.vocabulary import (
    BuildReport,
    Context,
    Failure,
    FailureKind,
    Measurement,
    Regime,
    Schedule,
    Status,
    Target,
    Timing,
)

PROBE_LIMIT_S = 60.0

Render = Callable[[Kernel, Schedule, Target], KernelSource]
IllegalBecause = Callable[[Kernel, Schedule, Target], str | None]


@dataclass(frozen=True, slots=True)
class CudaSettings:
    """How a CUDA device works: which GPU, how many compile processes, which commands, which limits and regimes.

    With a `probe_command` the device is open as soon as that has told the context; without, when the benchmark process
    is up. Without a `sampler_command` nobody looks at the GPU's clocks and heat.
    """

    index: int
    compilers: int
    worker_command: tuple[str, ...] = entry_command("engine.measure.worker")
    compile_command: tuple[str, ...] = entry_command("engine.measure.compile_worker")
    probe_command: tuple[str, ...] = ()
    sampler_command: tuple[str, ...] = ()
    compile_limits: CompileLimits = field(default_factory=CompileLimits)
    watch_limits: WatchLimits = field(default_factory=WatchLimits)
    regimes: Mapping[Regime, RegimeSettings] = field(default_factory=lambda: REGIMES)


@dataclass(frozen=True, slots=True)
class _Task:
    """Work for the thread that owns the benchmark process, and where its result goes."""

    future: Future[Any]
    work: Callable[[WorkerLink], Any]


class CudaDevice:
    """Implements `Device` on one GPU. Raises DeviceError when it can't be opened."""

    def __init__(
        self,
        settings: CudaSettings,
        render: Render,
        illegal_because: IllegalBecause,
        beside: CudaDevice | None = None,
    ) -> None:
        """With `beside` it shares the compilers of that device, instead of starting its own."""
        self.name = f"cuda:{settings.index}"
        self._settings = settings
        self._render = render
        self._illegal_because = illegal_because
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._pending: set[Future[Any]] = set()
        self._closed = False
        self._gone: DeviceError | None = None
        self._noise: NoiseFloor | None = None
        self._workshop: Workshop = (
            beside._workshop.enter()
            if beside is not None
            else Workshop(settings.compile_command, settings.compilers, settings.compile_limits)
        )
        self._nursery, self._pool = self._workshop.nursery, self._workshop.pool
        self._link = WorkerLink(self._nursery, settings.worker_command, settings.index, settings.watch_limits)
        sampler = settings.sampler_command
        self._sampling = Sampling(self._nursery, sampler, settings.index) if sampler else None
        hello: Future[Message] = Future()
        self._thread = threading.Thread(target=self._serve, args=(hello,), name=self.name, daemon=True)
        self._thread.start()
        try:
            message = self._probe(settings.probe_command) if settings.probe_command else hello.result()
            self._context = Context(**message["context"])
            self._target = Target(**message["target"])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> CudaDevice:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def context(self) -> Context:
        return self._context

    @property
    def target(self) -> Target:
        return self._target

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        """See `Device.submit`. An illegal schedule is answered at once and starts no work."""
        future: Future[Measurement] = Future()
        blank = Measurement(kernel.key, schedule, regime, self._context.key, Status.FAILED)
        if reason := self._illegal_because(kernel, schedule, self._target):
            future.set_result(_failed(blank, Failure(FailureKind.ILLEGAL, reason)))
            return future
        try:
            source = self._render(kernel, schedule, self._target) if is_generated(kernel) else None
        except Exception as error:
            cause = f"the code generator refused it: {type(error).__name__}: {error}"[:300]
            future.set_result(_failed(blank, Failure(FailureKind.COMPILE_ERROR, cause)))
            return future
        self._track(future)
        if future.done():
            return future
        settings = self._settings.regimes[regime]
        request: Message = {
            "op": "measure",
            "id": 0,
            "kernel": kernel_to_json(kernel),
            "source": source.to_json() if source is not None else "",
            "regime": asdict(settings),
        }
        if source is None:
            self._tasks.put(_Task(future, lambda link: _measured(blank, BuildReport(), link.ask(request))))
            return future
        compiled = self._pool.submit(source, self._target, settings.ptxas_level)
        compiled.add_done_callback(lambda reply: self._compiled(future, blank, request, reply))
        return future

    def assemble(
        self,
        grouping: Grouping,
        schedules: Mapping[str, Schedule],
        program: Graph | None = None,
        *,
        pdl: bool = False,
    ) -> AssembledResult:
        """See `Device.assemble`. Raises DeviceError when the device is gone, KeyError for a kernel without schedule."""
        settings = FINALIST
        sources: dict[str, KernelSource] = {}
        for key, (kernel, _) in grouping.kernel_counts().items():
            if reason := self._illegal_because(kernel, schedules[key], self._target):
                return AssembledResult(None, failure=Failure(FailureKind.ILLEGAL, reason))
            if is_generated(kernel):
                source = self._render(kernel, schedules[key], self._target)
                sources[key] = with_dependent_launch(source) if pdl else source
        replies = [self._pool.submit(source, self._target, settings.ptxas_level) for source in sources.values()]
        for reply in replies:
            if failure := reply.result().failure:
                return AssembledResult(None, failure=failure)
        request: Message = {
            "op": "assemble",
            "id": 0,
            "grouping": grouping_to_json(grouping),
            "program": graph_to_json(program) if program is not None else "",
            "sources": {key: source.to_json() for key, source in sources.items()},
            "regime": asdict(settings),
        }
        future: Future[AssembledResult] = Future()
        self._track(future)
        if not future.done():
            self._tasks.put(_Task(future, lambda link: _assembled(link.ask(request))))
        return future.result()

    def compare(self, kernel: Kernel, schedules: Sequence[Schedule], *, fresh: bool = False) -> PairedTimes:
        """See `Device.compare`."""
        sources = [self._render(kernel, schedule, self._target) for schedule in schedules]
        for reply in [self._pool.submit(source, self._target, TURNS.ptxas_level) for source in sources]:
            if failure := reply.result().failure:
                return PairedTimes(failure=failure)
        request: Message = {
            "op": "compare",
            "id": 0,
            "kernel": kernel_to_json(kernel),
            "sources": [source.to_json() for source in sources],
            "regime": asdict(TURNS),
            "seed": int(fresh),
        }

        def work(link: WorkerLink) -> PairedTimes:
            if fresh:
                link.renew()
            return _paired(link.ask(request))

        future: Future[PairedTimes] = Future()
        self._track(future)
        if not future.done():
            self._tasks.put(_Task(future, work))
        return future.result()

    def health(self) -> DeviceHealth:
        respawns = max(0, self._link.starts - self._link.renewals - 1)
        sampling = self._sampling
        return DeviceHealth(
            *(self._link.busy_s, self._pool.compiling, respawns, self._noise),
            states=((self.name, sampling.state),) if sampling and sampling.state else (),
            unsampled=(sampling.missing,) if sampling and sampling.missing else (),
        )

    def close(self) -> None:
        """See `Device.close`. May be called more than once, and from any thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            pending = list(self._pending)
        for future in pending:
            future.cancel()
        self._link.interrupt()
        self._tasks.put(None)
        if self._sampling is not None:
            self._sampling.close()
        last = self._workshop.leave()
        if last:
            self._pool.close()
        self._thread.join()
        if last:
            self._nursery.close()

    def _probe(self, command: Sequence[str]) -> Message:
        """Context and target from a process that loads no torch. Raises DeviceError."""
        try:
            child = self._nursery.start(command, "probe")
        except OSError as error:
            raise DeviceError(f"the GPU can't be probed: {error}") from None
        try:
            child.channel.send({"device": self._settings.index})
            answer = child.channel.receive(PROBE_LIMIT_S)
        except TimeoutError:
            raise DeviceError(f"the driver said nothing for {PROBE_LIMIT_S:.0f} s") from None
        except ChannelClosed:
            raise DeviceError(f"the process that probes the GPU died of {child.death()}: {child.last_line()}") from None
        finally:
            self._nursery.bury(child)
        if "unusable" in answer:
            raise DeviceError(str(answer["unusable"]))
        return answer

    def _track(self, future: Future[Any]) -> None:
        """Remember a future until it is done; refuse it at once if the device can't serve it any more."""
        with self._lock:
            gone = self._gone or (DeviceError(f"{self.name} is closed") if self._closed else None)
            if gone is None:
                self._pending.add(future)
        if gone is not None:
            future.set_exception(gone)
            return
        future.add_done_callback(self._forget)

    def _forget(self, future: Future[Any]) -> None:
        with self._lock:
            self._pending.discard(future)

    def _compiled(
        self, future: Future[Measurement], blank: Measurement, request: Message, reply: Future[CompileReply]
    ) -> None:
        """Called in a thread of the compile pool, or in the caller's when the source was compiled before."""
        if reply.cancelled():
            future.cancel()
            return
        if error := reply.exception():
            if isinstance(error, DeviceError):
                self._gone = error
            with suppress(InvalidStateError):
                future.set_exception(error)
            return
        compiled = reply.result()
        if compiled.failure is not None:
            with suppress(InvalidStateError):
                future.set_result(_failed(blank, compiled.failure, compiled.build))
            return
        self._tasks.put(_Task(future, lambda link: _measured(blank, compiled.build, link.ask(request))))

    def _serve(self, hello: Future[Message]) -> None:
        """The thread that owns the benchmark process, from its start to its end."""
        try:
            hello.set_result(self._link.start())
        except DeviceError as error:
            with self._lock:
                self._gone = error
            hello.set_exception(error)
        else:
            with suppress(DeviceError):  # which the first task meets again
                self._noise = _noise_of(self._link.ask({"op": "noise", "id": 0, "regime": asdict(TURNS)}))
        while (task := self._tasks.get()) is not None:
            if not task.future.done():
                self._run(task)
        self._link.stop()

    def _run(self, task: _Task) -> None:
        try:
            if self._gone is not None:
                raise self._gone
            result = task.work(self._link)
        except DeviceError as error:
            with self._lock:
                self._gone = error
            with suppress(InvalidStateError):
                task.future.set_exception(error)
            return
        if self._closed:
            task.future.cancel()
            return
        with suppress(InvalidStateError):
            task.future.set_result(result)


def _failed(blank: Measurement, failure: Failure, build: BuildReport | None = None) -> Measurement:
    return replace(blank, failure=failure, build=build or BuildReport())


def _measured(blank: Measurement, compiled: BuildReport, answer: Message) -> Measurement:
    measurement = replace(blank, build=compiled, error=_finite(answer.get("error")), run_s=answer.get("run_s"))
    if failure := _failure(answer):
        return replace(measurement, failure=failure)
    build = _merged(compiled, answer.get("build") or {})
    return replace(measurement, status=Status.OK, timing=_timing(answer), build=build)


def _assembled(answer: Message) -> AssembledResult:
    if failure := _failure(answer):
        return AssembledResult(None, _finite(answer.get("error")), failure)
    return AssembledResult(_timing(answer), _finite(answer.get("error")))


def _paired(answer: Message) -> PairedTimes:
    if failure := _failure(answer):
        return PairedTimes(failure=failure)
    return PairedTimes(tuple(tuple(map(float, of_one)) for of_one in answer["windows"]))


def _noise_of(answer: Message) -> NoiseFloor | None:
    """None where it could not be taken: a run without it is judged by its windows alone."""
    windows = _paired(answer).windows if "windows" in answer else ()
    return noise_floor(*windows) if len(windows) == 2 else None


def _merged(compiled: BuildReport, loaded: Mapping[str, Any]) -> BuildReport:
    """The compiler's report, with what only the driver knows where the compiler's is silent."""
    return BuildReport(
        compiled.registers if compiled.registers is not None else loaded.get("registers"),
        compiled.spills if compiled.spills is not None else loaded.get("spills"),
        compiled.shared_bytes if compiled.shared_bytes is not None else loaded.get("shared_bytes"),
        compiled.compile_s,
    )


def _failure(answer: Message) -> Failure | None:
    failure = answer.get("failure")
    return Failure(FailureKind(failure["kind"]), failure["cause"]) if failure else None


def _timing(answer: Message) -> Timing:
    timing = answer["timing"]
    samples: Sequence[float] = timing["samples"]
    return Timing(timing["median_us"], timing["low_us"], timing["high_us"], tuple(samples))


def _finite(error: float | None) -> float | None:
    """NaN and infinity have no JSON form; the cause says what they meant."""
    return error if error is not None and math.isfinite(error) else None
