"""The benchmark process of one GPU: checks and times one candidate at a time, and may die of any of them.

It holds the inputs and references of the kernels it saw last, so that a candidate costs a launch, a comparison and a
few ms of replays. Before each step that may hang it says how long that step may take; the engine kills it past that.
"""

from __future__ import annotations

import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import torch

from engine.codegen import KernelSource
from engine.ir.json_form import graph_from_json, grouping_from_json, kernel_from_json
from engine.ir.kernel import Kernel
from engine.ir.plan import Grouping
from engine.measure.channel import Channel, ChannelClosed, Message
from engine.measure.checking import Rejected, check_once, impossible_for, report_of
from engine.measure.child_side import open_channel
from engine.measure.regimes import RegimeSettings
from engine.runtime import (
    BuildError,
    Case,
    CompiledSource,
    DiskFull,
    Flush,
    Launch,
    TimingPlan,
    allow_scratch_memory,
    assemble_plan,
    bind_extern,
    bind_launch,
    compile_source,
    context_is_sound,
    describe_unusable,
    elsewhere,
    expected_ms,
    failure_of,
    free_memory,
    is_intact,
    load_launcher,
    measure_ceilings,
    no_space,
    overwrite_inputs,
    poison,
    prepare_case,
    prepare_plan_case,
    probe_us,
    quantiles,
    read_context,
    read_target,
    references_for,
    repair,
    replayed,
    stream_launch,
    time_in_turns,
    time_launches,
)
from engine.vocabulary import Context, Failure, FailureKind, Target, Timing

CACHED_CASES = 2
PLACES, PLACES_BYTES = 5, 1 << 30
"""A comparison's rounds take turns at so many places for the data, if all of them take no more bytes than that."""
PREPARE_LIMIT_S = 300.0
LOAD_LIMIT_S = 90.0
LAUNCH_LIMIT_S = 2.0
STEP_LIMIT_S = 5.0
FROM_DISK = ("load", "first launch")  # which write files: binaries, and what a C compiler makes of a launch
SLOWDOWN_LIMIT = 2000.0
"""A first launch may take LAUNCH_LIMIT_S plus this many times what the chip needs at its best."""


def main(read_fd: int, write_fd: int, parent: int) -> None:
    """Serve measuring requests until the channel closes. The first message names the device, which nothing touches
    before: a spare may import beside a process that times."""
    channel = open_channel(read_fd, write_fd, parent)
    try:
        channel.send({"ready": True})
        first = channel.receive()
        try:
            bench = open_bench(channel, int(first["device"]), Path(first["folder"]))
        except Exception as error:
            channel.send({"unusable": describe_unusable(error)})
            return
        channel.send(bench.hello())
        while True:
            bench.serve(channel.receive())
    except ChannelClosed:
        return


def open_bench(channel: Channel, index: int, folder: Path) -> Bench:
    """Take the GPU into use. Raises whatever torch, the driver or Triton's host side have against it."""
    device = torch.device("cuda", index)
    torch.cuda.set_device(device)
    torch.zeros(1, device=device)
    torch.cuda.synchronize()
    allow_scratch_memory(device)
    load_launcher()
    return Bench(channel, folder, device, read_context(index), read_target(index))


class Bench:
    """Everything the benchmark process knows. One request at a time."""

    def __init__(self, channel: Channel, folder: Path, device: torch.device, context: Context, target: Target) -> None:
        self._channel = channel
        self._folder = folder
        self._device = device
        self._context = context
        self._target = target
        self._kernels: dict[str, Kernel] = {}
        self._cases: OrderedDict[str, Case] = OrderedDict()
        self._passed: set[tuple[str, str]] = set()
        self._step = "start"
        self._flush: Flush | None = None

    def hello(self) -> Message:
        return {"context": asdict(self._context), "target": asdict(self._target)}

    def serve(self, request: Message) -> None:
        """Answer one request. A GPU whose context is broken ends the process after the answer."""
        start = time.perf_counter()
        works: dict[str, Callable[[Message], Message]] = {
            "measure": self._measure,
            "assemble": self._assemble,
            "compare": self._compare,
            "compare graphs": self._compare_graphs,
            "noise": self._noise,
            "ceilings": self._ceilings,
        }
        work = works[request["op"]]
        try:
            answer = work(request)
        except Rejected as rejected:
            answer = {"failure": asdict(rejected.failure), "error": rejected.error}
        except BuildError as error:
            answer = {"failure": asdict(error.failure)}
        except DiskFull as error:
            answer = {"full": str(error)}
        except Exception as error:
            answer = self._answer_of(error)
        if "failure" in answer:
            self._clean_up(FailureKind(answer["failure"]["kind"]))
            answer["broken"] = not context_is_sound()
        self._channel.send({**answer, "id": request["id"], "run_s": time.perf_counter() - start})
        if answer.get("broken"):
            os._exit(0)

    def _measure(self, request: Message) -> Message:
        settings = RegimeSettings.from_data(request["regime"])
        kernel = self._kernel(request["kernel"])
        case = self._case(kernel)
        compiled = self._loaded(request["source"], settings)
        launch = self._bound(kernel, compiled, case)
        timing, error = self._check_and_time(launch, case, settings, kernel)
        build = asdict(report_of(compiled)) if compiled is not None else {}
        return {"timing": asdict(timing), "error": error, "build": build}

    def _assemble(self, request: Message) -> Message:
        settings = RegimeSettings.from_data(request["regime"])
        grouping = grouping_from_json(request["grouping"])
        (sources,) = request["sources"]
        for key, (kernel, _) in grouping.kernel_counts().items():
            if key in sources:
                self._check_alone(kernel, sources[key], settings)
        inputs = self._plan_case(grouping, request["program"])
        launch, case = self._whole(grouping, self._all_loaded(sources, settings), inputs)
        timing, error = self._check_and_time(launch, case, settings, grouping, as_graph=True)
        return {"timing": asdict(timing), "error": error}

    def _compare_graphs(self, request: Message) -> Message:
        """Windows of one plan built with several sets of sources; one that may not pass ends the comparison."""
        settings = RegimeSettings.from_data(request["regime"])
        grouping = grouping_from_json(request["grouping"])
        inputs = self._plan_case(grouping, request["program"])
        floor_s = self._floor_s(grouping)
        loaded = [self._all_loaded(sources, settings) for sources in request["sources"]]
        launches: list[Launch] = []
        estimates: list[float] = []
        room = 0
        for one in loaded:
            launch, case = self._whole(grouping, one, inputs)
            estimates.append(self._admitted(launch, case, settings, floor_s, as_graph=True)[0])
            launches.append(launch)
            room += sum(tensor.nbytes for tensor in case.written)
        places = self._elsewhere(inputs, room)
        moved = [[self._whole(grouping, one, place)[0] for one in loaded] for place in places]
        return {"windows": self._in_turns(launches, estimates, settings, 0, moved)}

    def _plan_case(self, grouping: Grouping, program: str) -> Case:
        """The plan's inputs and references; cases of single kernels give way to them."""
        self._enter("prepare", PREPARE_LIMIT_S)
        self._cases.clear()
        return prepare_plan_case(grouping, graph_from_json(program) if program else None, 0, self._device)

    def _all_loaded(self, sources: Mapping[str, str], settings: RegimeSettings) -> dict[str, CompiledSource]:
        self._enter("load", LOAD_LIMIT_S)
        return {key: self._compile(text, settings) for key, text in sources.items()}

    def _whole(self, grouping: Grouping, compiled: Mapping[str, CompiledSource], case: Case) -> tuple[Launch, Case]:
        """The plan with buffers of its own, and the case that looks at those."""
        plan = assemble_plan(grouping, compiled, case.inputs)
        return plan.launch, replace(case, outputs=plan.outputs, written=plan.written, prepare=plan.prepare)

    def _loaded(self, source: str, settings: RegimeSettings) -> CompiledSource | None:
        """`source` is empty for a library's call, which needs no binary."""
        self._enter("load", LOAD_LIMIT_S)
        return self._compile(source, settings) if source else None

    def _bound(self, kernel: Kernel, compiled: CompiledSource | None, case: Case) -> Launch:
        if compiled is None:
            return bind_extern(kernel.body, case.inputs, case.outputs)
        return bind_launch(compiled, case.inputs, case.outputs)

    def _check_alone(self, kernel: Kernel, source: str, settings: RegimeSettings) -> None:
        """A finalist by itself, where it shows which kernel is wrong; once, however many wholes it is part of."""
        if (kernel.key, source) in self._passed:
            return
        case = self._case(kernel)
        launch = self._bound(kernel, self._loaded(source, settings), case)
        try:
            self._admitted(launch, case, settings, self._floor_s(kernel))
        except Rejected as rejected:
            failure = rejected.failure
            alone = replace(failure, cause=f"{kernel.label or kernel.key}, alone: {failure.cause}")
            raise Rejected(alone, rejected.error) from None
        self._passed.add((kernel.key, source))

    def _compare(self, request: Message) -> Message:
        """Windows of several candidates of one kernel, timed in turns; one that may not pass ends the comparison."""
        settings = RegimeSettings.from_data(request["regime"])
        kernel = self._kernel(request["kernel"])
        case = self._case(kernel)
        floor_s = self._floor_s(kernel)
        loaded: list[CompiledSource | None] = []
        launches: list[Launch] = []
        estimates: list[float] = []
        for source in request["sources"]:
            loaded.append(self._loaded(source, settings))
            launches.append(self._bound(kernel, loaded[-1], case))
            estimates.append(self._admitted(launches[-1], case, settings, floor_s)[0])
        moved = [[self._bound(kernel, one, place) for one in loaded] for place in self._elsewhere(case)]
        return {"windows": self._in_turns(launches, estimates, settings, int(request["seed"]), moved)}

    def _elsewhere(self, case: Case, room: int = 0) -> list[Case]:
        """The case with its data in other places, if that takes little memory: `room` bytes a place besides."""
        size = room + sum(tensor.untyped_storage().nbytes() for tensor in (*case.inputs, *case.outputs))
        copies = [elsewhere(case) for _ in range(min(PLACES, PLACES_BYTES // max(size, 1)) - 1)]
        return [replace(case, inputs=inputs, outputs=outputs) for inputs, outputs in copies]

    def _noise(self, request: Message) -> Message:
        """Windows of one launch timed in turns with itself: what differs is the machine's noise."""
        self._enter("noise floor", LOAD_LIMIT_S)
        launch = stream_launch(self._device)
        settings = RegimeSettings.from_data(request["regime"])
        return {"windows": self._in_turns([launch, launch], [probe_us(launch)] * 2, settings, 0)}

    def _ceilings(self, request: Message) -> Message:
        self._enter("ceilings", LOAD_LIMIT_S)
        return {"ceilings": measure_ceilings(self._device, cold_l2=bool(request["cold_l2"])).text}

    def _in_turns(
        self,
        launches: Sequence[Launch],
        estimates: Sequence[float],
        settings: RegimeSettings,
        seed: int,
        moved: Sequence[Sequence[Launch]] = (),
    ) -> tuple[tuple[float, ...], ...]:
        plan = self._plan(settings)
        expected = sum(expected_ms(plan, estimate_us) for estimate_us in estimates)
        self._enter("timing", STEP_LIMIT_S + 20e-3 * expected)
        return time_in_turns(launches, plan, estimates, seed, moved)

    def _plan(self, settings: RegimeSettings) -> TimingPlan:
        if settings.cold_l2 and self._flush is None:
            self._enter("load", LOAD_LIMIT_S)
            self._flush = Flush(self._device, self._target, self._folder)
        flush = self._flush if settings.cold_l2 else None
        return TimingPlan(settings.window_ms, settings.windows, settings.warmup_ms, flush=flush)

    def _floor_s(self, work: Kernel | Grouping) -> float:
        """What the chip needs at its best, in s."""
        return work.flops / self._target.peak_bf16 + work.bytes_moved / self._target.memory_bandwidth

    def _kernel(self, text: str) -> Kernel:
        kernel = self._kernels.get(text)
        if kernel is None:
            kernel = self._kernels[text] = kernel_from_json(text)
        return kernel

    def _case(self, kernel: Kernel) -> Case:
        case = self._cases.get(kernel.key)
        if case is None:
            self._enter("prepare", PREPARE_LIMIT_S)
            while len(self._cases) >= CACHED_CASES:
                self._cases.popitem(last=False)
            case = self._cases[kernel.key] = self._prepare(kernel)
        self._cases.move_to_end(kernel.key)
        return case

    def _prepare(self, kernel: Kernel) -> Case:
        """A case, for which the cases of earlier kernels give way if need be."""
        try:
            return prepare_case(kernel, 0, self._device)
        except torch.OutOfMemoryError:
            self._cases.clear()
        free_memory()
        return prepare_case(kernel, 0, self._device)

    def _compile(self, source: str, settings: RegimeSettings) -> CompiledSource:
        """The binary that a compile process left in the cache."""
        return compile_source(KernelSource.from_json(source), self._target, self._folder, settings.ptxas_level)

    def _check_and_time(
        self, launch: Launch, case: Case, settings: RegimeSettings, work: Kernel | Grouping, *, as_graph: bool = False
    ) -> tuple[Timing, float]:
        """The timing, and the largest error of all checks. Raises Rejected for what may not pass."""
        estimate_us, error = self._admitted(launch, case, settings, self._floor_s(work), as_graph=as_graph)
        plan = self._plan(settings)
        self._enter("timing", STEP_LIMIT_S + 10e-3 * expected_ms(plan, estimate_us))
        samples = time_launches(launch, plan, estimate_us)
        timing = Timing(*quantiles(samples), samples)
        if failure := impossible_for(timing.median_us, work, self._target):
            raise Rejected(failure, error)
        return timing, error

    def _admitted(
        self, launch: Launch, case: Case, settings: RegimeSettings, floor_s: float, *, as_graph: bool = False
    ) -> tuple[float, float]:
        """About what a launch takes (us), and the largest error of all checks. Raises Rejected for what may not pass.

        What is to run as a graph is checked as one: launches overlap there as they don't on a stream.
        """
        estimate_us = self._first_launch(launch, case, floor_s)
        return estimate_us, self._check(replayed(launch) if as_graph else launch, case, settings.checks, estimate_us)

    def _first_launch(self, launch: Launch, case: Case, floor_s: float) -> float:
        """Run twice, once to see whether it ends, once to see how long it takes (us)."""
        poison(case.written, case.poison_byte)
        torch.cuda.synchronize()
        self._enter("first launch", LAUNCH_LIMIT_S + SLOWDOWN_LIMIT * floor_s)
        launch()
        torch.cuda.synchronize()
        return probe_us(launch)

    def _check(self, launch: Launch, case: Case, checks: int, estimate_us: float) -> float:
        """Compare `checks` times, each on poisoned outputs, all but the first on fresh inputs; the largest error."""
        self._enter("check", STEP_LIMIT_S + 4 * checks * (case.prepare_s + estimate_us * 1e-6))
        try:
            error = check_once(launch, case, case.references)
        except Rejected:
            if is_intact(case):
                raise
            # An earlier candidate wrote into what this one was compared with: not this one's fault.
            repair(case)
            error = check_once(launch, case, case.references)
        if checks == 1:
            return error
        try:
            for seed in range(case.seed + 1, case.seed + checks):
                overwrite_inputs(case, seed)
                error = max(error, check_once(launch, case, references_for(case)))
        finally:
            overwrite_inputs(case, case.seed)
        launch()
        if not is_intact(case):
            repair(case)
            raise Rejected(Failure(FailureKind.WRONG_RESULT, "it writes into memory that is not its output"), error)
        return error

    def _enter(self, step: str, limit_s: float) -> None:
        self._step = step
        self._channel.send({"step": step, "limit_s": limit_s})

    def _answer_of(self, error: Exception) -> Message:
        if self._step in FROM_DISK and no_space(error, self._folder):
            return {"full": f"no space is left under {self._folder}, where candidates are loaded from"}
        return {"failure": asdict(self._failure_of(error))}

    def _failure_of(self, error: Exception) -> Failure:
        with suppress(OSError):  # where its log is there may be no space
            print(f"{self._step}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        if self._step == "load":
            return failure_of(error)
        return failure_of(error, otherwise=FailureKind.CRASH)

    def _clean_up(self, kind: FailureKind) -> None:
        if kind is FailureKind.OUT_OF_MEMORY:
            self._cases.clear()
        if kind in (FailureKind.OUT_OF_MEMORY, FailureKind.CRASH):
            free_memory()
