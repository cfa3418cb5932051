"""A CUDA device: candidates compile in parallel and are timed one at a time, whatever each of them does.

The caller's thread renders; the compile pool's threads compile and put what is ready into one queue; one thread owns
the benchmark process and takes candidates from the queue in the order in which their compiles ended.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

from engine.codegen import KernelSource, is_generated
from engine.ir.graph import Graph
from engine.ir.json_form import kernel_to_json
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.ir.roofline import Ceilings
from engine.measure.answers import assembled, ceilings_of, failed, measured, noise_of, paired
from engine.measure.channel import Message
from engine.measure.compile_pool import CompileLimits, CompileReply
from engine.measure.controls import Controls, context_with
from engine.measure.device import AssembledResult, DeviceError, DeviceHealth, PairedTimes, Schedules
from engine.measure.graph_request import IllegalBecause, Render, graph_request, graph_sources
from engine.measure.health import Candidate
from engine.measure.link import WatchLimits, WorkerLink
from engine.measure.noise import NoiseFloor
from engine.measure.probing import probed
from engine.measure.process import entry_command
from engine.measure.regimes import FINALIST, RANKING_LEVELS, REGIMES, TURNS, RegimeSettings, ranking_kind
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
)

QUIET_S = 0.05
"""After so long without work the spare may open the GPU: what comes then waits for it, up to a second."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class CudaSettings:
    """How a CUDA device works: which GPU, how many compile processes, which commands, which limits and regimes.

    With a `probe_command` the device is open as soon as that has told the context, and the benchmark process starts
    with the first request, or with `start`; without, the device is open when the benchmark process is up. Without a
    `stem_command` each benchmark process imports for itself; without a `sampler_command` nobody looks at the GPU's
    clocks and heat. With `controls` their ptxas assembles. With `cold_l2` each launch finds the GPU's L2 cache without
    its data, and the context says so.
    """

    index: int
    compilers: int
    worker_command: tuple[str, ...] = entry_command("engine.measure.worker")
    stem_command: tuple[str, ...] = entry_command("engine.measure.stem_child")
    compile_command: tuple[str, ...] = entry_command("engine.measure.compile_worker")
    probe_command: tuple[str, ...] = ()
    sampler_command: tuple[str, ...] = ()
    controls: Controls | None = None
    cold_l2: bool = False
    compile_limits: CompileLimits = field(default_factory=CompileLimits)
    watch_limits: WatchLimits = field(default_factory=WatchLimits)
    regimes: Mapping[Regime, RegimeSettings] = field(default_factory=lambda: REGIMES)
    ranking_levels: Mapping[str, int] = field(default_factory=lambda: RANKING_LEVELS)


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
        self._at: Future[Any] | None = None
        self._closed = False
        self._gone: DeviceError | None = None
        self._noise: NoiseFloor | None = None
        self._ceilings: Ceilings | None = None
        self._cold = settings.cold_l2
        self._workshop: Workshop = (
            beside._workshop.enter()
            if beside is not None
            else Workshop(settings.compile_command, settings.compilers, settings.compile_limits, settings.controls)
        )
        self._nursery, self._pool = self._workshop.nursery, self._workshop.pool
        limits, stem = settings.watch_limits, settings.stem_command
        self._link = WorkerLink(self._nursery, settings.worker_command, settings.index, limits, stem)
        sampler = settings.sampler_command
        self._sampling = Sampling(self._nursery, sampler, settings.index) if sampler else None
        hello: Future[Message] = Future()
        self._wanted = threading.Event()
        if not settings.probe_command:
            self._wanted.set()
        self._thread = threading.Thread(target=self._serve, args=(hello,), name=self.name, daemon=True)
        self._thread.start()
        try:
            command = settings.probe_command
            message = probed(self._nursery, command, settings.index) if command else hello.result()
            context = Context(**{**message["context"], "cold_l2": self._cold})
            self._context = context_with(settings.controls, context)
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

    def start(self) -> None:
        """See `Starts`."""
        self._wanted.set()

    def submit(self, kernel: Kernel, schedule: Schedule, regime: Regime) -> Future[Measurement]:
        """See `Device.submit`. An illegal schedule is answered at once and starts no work."""
        future: Future[Measurement] = Future()
        blank = Measurement(kernel.key, schedule, regime, self._context.key, Status.FAILED)
        if reason := self._illegal_because(kernel, schedule, self._target):
            future.set_result(failed(blank, Failure(FailureKind.ILLEGAL, reason)))
            return future
        try:
            source = self._render(kernel, schedule, self._target) if is_generated(kernel) else None
        except Exception as error:
            cause = f"the code generator refused it: {type(error).__name__}: {error}"[:300]
            future.set_result(failed(blank, Failure(FailureKind.COMPILE_ERROR, cause)))
            return future
        self._track(future)
        if future.done():
            return future
        settings = self._regime(self._settings.regimes[regime])
        if regime is Regime.RANKING:
            level = self._settings.ranking_levels.get(ranking_kind(kernel), settings.ptxas_level)
            settings = replace(settings, ptxas_level=level)
        whose = Candidate(kernel.key, str(schedule))
        request: Message = {
            "op": "measure",
            "id": 0,
            "kernel": kernel_to_json(kernel),
            "source": source.to_json() if source is not None else "",
            "regime": asdict(settings),
        }
        if source is None:
            self._tasks.put(_Task(future, lambda link: measured(blank, BuildReport(), link.ask(request, whose))))
            return future

        def take(reply: Future[CompileReply]) -> None:
            if reply.cancelled() and not self._closed and not future.done():
                begin()  # another candidate shared the compile, and let it go
            else:
                self._compiled(future, blank, request, reply)

        def begin() -> None:
            compiled = self._pool.submit(source, self._target, settings.ptxas_level, whose)
            compiled.add_done_callback(take)
            self._pool.end_with(future, compiled)

        begin()
        return future

    def assemble(
        self, grouping: Grouping, schedules: Schedules, program: Graph | None = None, *, pdl: bool = False
    ) -> AssembledResult:
        """See `Device.assemble`. Raises DeviceError when the device is gone, KeyError for a kernel without schedule."""
        self.start()
        asked = self._graphs(grouping, [schedules], program, FINALIST, pdl)
        if isinstance(asked, Failure):
            return AssembledResult(None, failure=asked)
        return self._done(lambda link: assembled(link.ask({"op": "assemble", **asked})))

    def compare_graphs(
        self, grouping: Grouping, schedules: Sequence[Schedules], program: Graph | None = None, *, pdl: bool = False
    ) -> PairedTimes:
        """See `ComparesGraphs`."""
        self.start()
        asked = self._graphs(grouping, schedules, program, TURNS, pdl)
        if isinstance(asked, Failure):
            return PairedTimes(failure=asked)
        return self._done(lambda link: paired(link.ask({"op": "compare graphs", **asked})))

    def _graphs(
        self, plan: Grouping, schedules: Sequence[Schedules], program: Graph | None, regime: RegimeSettings, pdl: bool
    ) -> Message | Failure:
        """The request but for its operation, once its sources are compiled; or why a graph can't be built."""
        graphs = graph_sources(plan, schedules, self._target, self._render, self._illegal_because, pdl=pdl)
        if isinstance(graphs, Failure):
            return graphs
        failure = self._refused([source for sources in graphs for source in sources.values()], regime)
        return failure or graph_request(plan, program, graphs, self._regime(regime))

    def compare(self, kernel: Kernel, schedules: Sequence[Schedule], *, fresh: bool = False) -> PairedTimes:
        """See `Device.compare`."""
        self.start()
        sources = [self._render(kernel, schedule, self._target) for schedule in schedules]
        if failure := self._refused(sources, TURNS):
            return PairedTimes(failure=failure)
        request: Message = {
            "op": "compare",
            "id": 0,
            "kernel": kernel_to_json(kernel),
            "sources": [source.to_json() for source in sources],
            "regime": asdict(self._regime(TURNS)),
            "seed": int(fresh),
        }

        def work(link: WorkerLink) -> PairedTimes:
            if fresh:
                link.renew()
            return paired(link.ask(request, Candidate(kernel.key)))

        return self._done(work)

    def _refused(self, sources: Sequence[KernelSource], regime: RegimeSettings) -> Failure | None:
        """Compile them all; why the first that doesn't compile doesn't."""
        replies = [self._pool.submit(source, self._target, regime.ptxas_level) for source in sources]
        return next((failure for reply in replies if (failure := reply.result().failure)), None)

    def offer(self, controls: Controls) -> bool:
        """See `TakesControls`."""
        controls.lay_out(self._nursery.sources)
        return True

    def health(self) -> DeviceHealth:
        respawns = max(0, self._link.starts - self._link.renewals - 1)
        sampling = self._sampling
        return DeviceHealth(
            *(self._link.busy_s, self._pool.compiling, respawns, self._noise),
            states=((self.name, sampling.state),) if sampling and sampling.state else (),
            missing=tuple(filter(None, (sampling.missing if sampling else "", self._link.missing))),
            compiles=self._pool.compiles,
            workers=self._link.states,
            respawned=self._link.respawned + self._pool.respawned,
            ceilings=self._ceilings,
            disk_full=self._pool.full or self._link.full,
        )

    def kill_compile(self, number: int) -> bool:
        """See `Device.kill_compile`."""
        return self._pool.kill(number)

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
        self._wanted.set()
        self._tasks.put(None)
        if self._sampling is not None:
            self._sampling.close()
        last = self._workshop.leave()
        if last:
            self._pool.close()
        self._thread.join()
        if last:
            self._nursery.close()

    def _done(self, work: Callable[[WorkerLink], Answer]) -> Answer:
        """What the work comes to, once its turn has come. Raises DeviceError when the device is gone."""
        future: Future[Answer] = Future()
        self._track(future)
        if not future.done():
            self._tasks.put(_Task(future, work))
        return future.result()

    def _regime(self, settings: RegimeSettings) -> RegimeSettings:
        return replace(settings, cold_l2=self._cold)

    def _track(self, future: Future[Any]) -> None:
        """Remember a future until it is done; refuse it at once if the device can't serve it any more."""
        with self._lock:
            gone = self._gone or (DeviceError(f"{self.name} is closed") if self._closed else None)
            if gone is None:
                self._pending.add(future)
                self._wanted.set()
        if gone is not None:
            future.set_exception(gone)
            return
        future.add_done_callback(self._forget)

    def _forget(self, future: Future[Any]) -> None:
        with self._lock:
            self._pending.discard(future)
            if future is self._at and future.cancelled():
                self._link.let_go()

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
        compiled, whose = reply.result(), Candidate(blank.kernel_key, str(blank.schedule))
        if compiled.failure is not None:
            with suppress(InvalidStateError):
                future.set_result(failed(blank, compiled.failure, compiled.build))
            return
        self._tasks.put(_Task(future, lambda link: measured(blank, compiled.build, link.ask(request, whose))))

    def _serve(self, hello: Future[Message]) -> None:
        """The thread that owns the benchmark process, from its start to its end."""
        self._wanted.wait()
        if self._closed:
            return
        try:
            hello.set_result(self._link.start())
        except DeviceError as error:
            with self._lock:
                self._gone = error
            hello.set_exception(error)
        else:
            with suppress(DeviceError):  # which the first task meets again
                self._noise = noise_of(self._link.ask({"op": "noise", "id": 0, "regime": asdict(self._regime(TURNS))}))
                self._ceilings = ceilings_of(self._link.ask({"op": "ceilings", "id": 0, "cold_l2": self._cold}))
        while (task := self._next()) is not None:
            with self._lock:
                self._at, self._link.unwanted = task.future, False
                ended = task.future.done()
            if not ended:
                self._run(task)
        self._link.stop()

    def _next(self) -> _Task | None:
        """The next work; None at the end."""
        while self._link.preparing:
            with suppress(queue.Empty):
                return self._tasks.get(timeout=QUIET_S)
            self._link.prepare()
        return self._tasks.get()

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
