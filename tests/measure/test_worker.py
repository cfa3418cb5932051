"""The benchmark process's own judgement, on CPU tensors: launches are Python, the checks and their data are real."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.codegen import KernelSource
from engine.ir import Graph, GraphBuilder, Kernel, TensorSpec
from engine.ir.extern import arguments_to_json
from engine.ir.json_form import graph_to_json, grouping_to_json, kernel_to_json
from engine.ir.plan import BufferView, Grouping, KernelCall
from engine.measure import REGIMES, RegimeSettings, worker
from engine.measure.regimes import FINALIST, TURNS
from engine.measure.worker import Bench
from engine.runtime import describe_unusable, evaluate
from engine.vocabulary import BuildReport, FailureKind, Regime, Target
from tests.measure.fake_worker import CONTEXT
from tests.measure.rig import a_kernel

KERNEL = a_kernel()
Body = Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor]], None]


class Recorder:
    """The channel's end of a test: what the bench says."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> None:
        (self.steps if "step" in message else self.answers).append(message)


class Compiled:
    def __init__(self, source: KernelSource) -> None:
        self.source = source
        self.kernel = None
        self.build = BuildReport(shared_bytes=64)


def right(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
    for output, value in zip(outputs, evaluate(KERNEL.body, inputs, dtype=None), strict=True):
        output.copy_(value)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Bench, Recorder, dict[str, Body]]:
    """A bench on the CPU, and the bodies that launches run, by the source's text."""
    bodies: dict[str, Body] = {"right": right}

    def bind(compiled: Compiled, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Callable[[], None]:
        return lambda: bodies[compiled.source.text](inputs, outputs)

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(worker, "compile_source", lambda source, *_: Compiled(source))
    monkeypatch.setattr(worker, "bind_launch", bind)
    monkeypatch.setattr("engine.runtime.assemble.bind_launch", bind)
    monkeypatch.setattr(worker, "replayed", lambda launch: launch)
    monkeypatch.setattr(worker, "probe_us", lambda launch: 10.0)
    monkeypatch.setattr(worker, "time_launches", lambda launch, plan, estimate: (9.0, 10.0, 11.0))
    monkeypatch.setattr(worker, "context_is_sound", lambda: True)
    recorder = Recorder()
    return Bench(recorder, tmp_path, torch.device("cpu"), CONTEXT, Target()), recorder, bodies  # type: ignore[arg-type]


def measure(
    rig: tuple[Bench, Recorder, dict[str, Body]], text: str, settings: RegimeSettings = REGIMES[Regime.RANKING]
) -> dict[str, Any]:
    bench, recorder, _ = rig
    source = KernelSource(text, "entry", (), (1, 1, 1), 4, 1)
    bench.serve(
        {
            "op": "measure",
            "id": 7,
            "kernel": kernel_to_json(KERNEL),
            "source": source.to_json(),
            "regime": asdict(settings),
        }
    )
    return recorder.answers[-1]


def test_a_library_call_needs_no_source(rig: Any) -> None:
    bench, recorder, _ = rig
    build = GraphBuilder()
    spec = TensorSpec.contiguous((4, 8), "float32")
    call = arguments_to_json([{"tensor": 0}, 1], {})
    kernel = Kernel("extern", build.build(build.extern("aten.cumsum.default", (build.input(spec),), call, spec)))
    settings = asdict(REGIMES[Regime.DEPLOY])
    bench.serve({"op": "measure", "id": 1, "kernel": kernel_to_json(kernel), "source": "", "regime": settings})
    assert recorder.answers[-1]["timing"]["median_us"] == 10.0
    assert recorder.answers[-1]["error"] < 1e-5
    plan = Grouping((spec, spec), (KernelCall(kernel, (BufferView(0, spec),), (1,)),), (BufferView(1, spec),))
    request = {"op": "assemble", "id": 2, "grouping": grouping_to_json(plan), "program": "", "sources": [{}]}
    bench.serve({**request, "regime": asdict(replace(REGIMES[Regime.DEPLOY], checks=3))})
    assert recorder.answers[-1]["timing"]["median_us"] == 10.0


def kind_of(answer: dict[str, Any]) -> FailureKind:
    return FailureKind(answer["failure"]["kind"])


def test_a_right_candidate_is_timed(rig: Any) -> None:
    answer = measure(rig, "right")
    assert answer["id"] == 7
    assert answer["timing"] == {"median_us": 10.0, "low_us": 9.0, "high_us": 11.0, "samples": (9.0, 10.0, 11.0)}
    assert 0 < answer["error"] < 1e-6
    assert answer["run_s"] > 0
    assert [step["step"] for step in rig[1].steps] == ["prepare", "load", "first launch", "check", "timing"]
    assert all(step["limit_s"] >= 2 for step in rig[1].steps)


def test_the_second_candidate_of_a_kernel_prepares_nothing(rig: Any) -> None:
    measure(rig, "right")
    rig[1].steps.clear()
    measure(rig, "right")
    assert "prepare" not in [step["step"] for step in rig[1].steps]


def half(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
    value = evaluate(KERNEL.body, inputs, dtype=None)[0]
    outputs[0][::2] = value[::2]


def nothing(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
    pass


def rounded(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
    outputs[0].copy_(inputs[0].bfloat16().float() @ inputs[1].bfloat16().float())


@pytest.mark.parametrize("body", [half, nothing, rounded])
def test_wrong_results_are_failures_with_their_error(rig: Any, body: Body) -> None:
    rig[2]["wrong"] = body
    answer = measure(rig, "wrong")
    assert kind_of(answer) is FailureKind.WRONG_RESULT
    assert "timing" not in answer
    assert not answer["broken"]
    assert "timing" in measure(rig, "right")


def test_a_stale_output_of_the_candidate_before_does_not_help(rig: Any) -> None:
    measure(rig, "right")
    rig[2]["wrong"] = nothing
    assert kind_of(measure(rig, "wrong")) is FailureKind.WRONG_RESULT


def test_a_finalist_is_checked_ten_times_on_fresh_inputs(rig: Any) -> None:
    seen: list[float] = []

    def watched(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        seen.append(float(inputs[0].sum()))
        right(inputs, outputs)

    rig[2]["watched"] = watched
    assert "timing" in measure(rig, "watched", FINALIST)
    assert len(set(seen)) == 10
    seen.clear()
    measure(rig, "watched")
    assert len(set(seen)) == 1


def test_a_race_that_one_check_misses_is_found_in_a_finalist(rig: Any) -> None:
    runs = iter(range(1000))

    def flaky(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        right(inputs, outputs)
        if next(runs) == 7:
            outputs[0][3, 3] += 1.0

    rig[2]["flaky"] = flaky
    assert kind_of(measure(rig, "flaky", FINALIST)) is FailureKind.WRONG_RESULT
    assert "timing" in measure(rig, "right"), "the inputs are those of the first check again"


def test_who_writes_into_the_inputs_costs_only_itself(rig: Any) -> None:
    def hostile(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        right(inputs, outputs)
        inputs[0].zero_()

    rig[2]["hostile"] = hostile
    measure(rig, "hostile")
    answer = measure(rig, "right")
    assert "timing" in answer, answer
    assert kind_of(measure(rig, "hostile", REGIMES[Regime.DEPLOY])) is FailureKind.WRONG_RESULT
    assert "timing" in measure(rig, "right", REGIMES[Regime.DEPLOY])


def test_exceptions_are_typed_by_where_and_what(rig: Any) -> None:
    def raising(error: Exception) -> Body:
        def body(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
            raise error

        return body

    rig[2]["access"] = raising(RuntimeError("CUDA error: an illegal memory access was encountered\nCompile with"))
    rig[2]["memory"] = raising(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"))
    rig[2]["odd"] = raising(RuntimeError("Triton Error [CUDA]: invalid argument"))
    kinds = [kind_of(measure(rig, text)) for text in ("access", "memory", "odd")]
    assert kinds == [FailureKind.ILLEGAL_ACCESS, FailureKind.OUT_OF_MEMORY, FailureKind.CRASH]
    assert "timing" in measure(rig, "right")


def test_an_impossible_time_is_a_failure(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "time_launches", lambda *_: (0.0, 0.0, 0.0))
    assert kind_of(measure(rig, "right")) is FailureKind.IMPOSSIBLE_TIME


def a_chain() -> Grouping:
    """Two calls of one kernel on one buffer each."""
    specs = KERNEL.body.input_specs()
    out = KERNEL.body.output_specs()[0]
    views = tuple(BufferView(i, spec) for i, spec in enumerate((*specs, out, out)))
    calls = (KernelCall(KERNEL, views[:2], (2,)), KernelCall(KERNEL, views[:2], (3,)))
    return Grouping((*specs, out, out), calls, (views[3], views[2]))


def a_program(negated: bool) -> Graph:
    """What the chain computes, twice; `negated` makes it another program on the same inputs."""
    build = GraphBuilder()
    left, right_ = (build.input(spec) for spec in KERNEL.body.input_specs())
    product = build.add("matmul", left, right_)
    product = build.add("neg", product) if negated else product
    return build.build(product, product)


def serve_chain(rig: Any, body: Body, program: str) -> dict[str, Any]:
    bench, recorder, bodies = rig
    bodies["plan"] = body
    request = {
        "op": "assemble",
        "id": 1,
        "grouping": grouping_to_json(a_chain()),
        "program": program,
        "sources": [{KERNEL.key: KernelSource("plan", "entry", (), (1, 1, 1), 4, 1).to_json()}],
        "regime": asdict(replace(REGIMES[Regime.DEPLOY], checks=3)),
    }
    bench.serve(request)
    answer: dict[str, Any] = recorder.answers[-1]
    return answer


def test_a_finalist_is_checked_alone_once_and_named_where_it_is_wrong(rig: Any) -> None:
    calls: list[int] = []

    def counted(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        calls.append(1)
        right(inputs, outputs)

    assert "timing" in serve_chain(rig, counted, "")
    first = len(calls)
    assert "timing" in serve_chain(rig, counted, "")
    alone = first - (len(calls) - first)
    assert alone >= 3, "one launch a check"
    bench, _, _ = rig
    bench._passed.clear()
    answer = serve_chain(rig, half, "")
    assert kind_of(answer) is FailureKind.WRONG_RESULT
    assert "alone: " in answer["failure"]["cause"]


@pytest.mark.parametrize(("body", "passes"), [(right, True), (half, False)])
def test_a_plan_is_checked_and_timed(rig: Any, body: Body, passes: bool) -> None:
    answer = serve_chain(rig, body, "")
    assert ("timing" in answer) is passes
    assert passes or kind_of(answer) is FailureKind.WRONG_RESULT


@pytest.mark.parametrize("negated", [False, True])
def test_a_plan_that_divides_the_program_wrongly_is_a_wrong_result(rig: Any, negated: bool) -> None:
    answer = serve_chain(rig, right, graph_to_json(a_program(negated)))
    assert ("timing" in answer) is not negated
    assert not negated or kind_of(answer) is FailureKind.WRONG_RESULT


def test_a_machine_without_a_gpu_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "no CUDA GPU" in describe_unusable(RuntimeError("x"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert "install gcc" in describe_unusable(RuntimeError("Failed to find C compiler. Please specify via CC"))


def compare(rig: Any, *texts: str) -> dict[str, Any]:
    bench, recorder, _ = rig
    sources = [KernelSource(text, "entry", (), (1, 1, 1), 4, 1).to_json() for text in texts]
    request = {"op": "compare", "id": 8, "kernel": kernel_to_json(KERNEL), "sources": sources, "seed": 1}
    bench.serve({**request, "regime": asdict(TURNS)})
    return recorder.answers[-1]


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, tuple[float, ...], int]]:
    """What was timed in turns: how many launches, which of them were the same, and the seed of their order."""
    asked: list[tuple[int, tuple[float, ...], int]] = []

    def in_turns(
        launches: Sequence[Any], plan: Any, estimates: Sequence[float], seed: int, moved: Sequence[Sequence[Any]]
    ) -> Any:
        for place in moved:
            assert len(place) == len(launches)
            for launch in place:
                launch()
        asked.append((len(set(map(id, launches))), tuple(estimates), seed))
        return tuple((10.0 + at, 10.5 + at) for at, _ in enumerate(launches))

    monkeypatch.setattr(worker, "time_in_turns", in_turns)
    return asked


def test_candidates_of_a_comparison_are_checked_and_timed_together(rig: Any, turns: list[Any]) -> None:
    rig[2]["also right"] = right
    answer = compare(rig, "right", "also right", "right")
    assert answer["windows"] == ((10.0, 10.5), (11.0, 11.5), (12.0, 12.5))
    assert turns == [(3, (10.0, 10.0, 10.0), 1)]
    steps = [step["step"] for step in rig[1].steps]
    assert (steps.count("check"), steps.count("load"), steps[-1]) == (3, 3, "timing"), "loaded once for all places"


def test_a_wrong_candidate_ends_a_comparison(rig: Any, turns: list[Any]) -> None:
    rig[2]["wrong"] = lambda inputs, outputs: outputs[0].zero_()
    answer = compare(rig, "right", "wrong")
    assert kind_of(answer) is FailureKind.WRONG_RESULT
    assert turns == []
    assert compare(rig, "right", "right")["windows"]


def compare_graphs(rig: Any, *texts: str) -> dict[str, Any]:
    bench, recorder, _ = rig
    sources = [{KERNEL.key: KernelSource(text, "entry", (), (1, 1, 1), 4, 1).to_json()} for text in texts]
    plan = {"grouping": grouping_to_json(a_chain()), "program": graph_to_json(a_program(False))}
    bench.serve({"op": "compare graphs", "id": 9, **plan, "sources": sources, "regime": asdict(TURNS)})
    answer: dict[str, Any] = recorder.answers[-1]
    return answer


def test_graphs_are_checked_with_buffers_of_their_own_and_timed_together(rig: Any, turns: list[Any]) -> None:
    outputs: list[int] = []

    def noted(inputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        outputs.append(results[0].data_ptr())
        right(inputs, results)

    rig[2]["one"] = rig[2]["two"] = noted
    assert compare_graphs(rig, "one", "two")["windows"] == ((10.0, 10.5), (11.0, 11.5))
    assert turns == [(2, (10.0, 10.0), 0)]
    assert len(set(outputs)) == 4 * worker.PLACES, "two graphs of two calls, in each place"
    assert [step["step"] for step in rig[1].steps].count("check") == 2


def test_a_graph_that_is_wrong_ends_the_comparison_of_graphs(rig: Any, turns: list[Any]) -> None:
    rig[2]["wrong"] = half
    assert kind_of(compare_graphs(rig, "right", "wrong")) is FailureKind.WRONG_RESULT
    assert turns == []
    assert compare_graphs(rig, "right", "right")["windows"]


def test_the_noise_floor_is_one_launch_against_itself(rig: Any, turns: list[Any], monkeypatch: Any) -> None:
    monkeypatch.setattr(worker, "stream_launch", lambda device: lambda: None)
    bench, recorder, _ = rig
    bench.serve({"op": "noise", "id": 9, "regime": asdict(TURNS)})
    assert recorder.answers[-1]["windows"] == ((10.0, 10.5), (11.0, 11.5))
    assert turns == [(1, (10.0, 10.0), 0)]


def test_a_launch_that_finds_no_space_is_no_fault(rig: Any) -> None:
    """The host's part of a launch is compiled at the first one, into files."""

    def unlucky(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    rig[2]["unlucky"] = unlucky
    assert measure(rig, "unlucky")["full"].startswith("no space is left under")


def test_a_failure_is_told_where_its_log_has_no_space(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
        raise ValueError("odd")

    rig[2]["odd"] = odd
    with Path("/dev/full").open("w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert kind_of(measure(rig, "odd")) is FailureKind.CRASH
        monkeypatch.undo()
        with suppress(OSError):
            full.close()
