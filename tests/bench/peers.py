"""Times the winners of a database against torch in the same process, interleaved, and prints the ratios.

    python -m tests.bench.peers DB [--compile] [--target TEXT]

For each recorded program: the fastest assembled grouping, torch eager, and with --compile torch.compile, each as one
CUDA graph of many launches. Windows alternate in random order; a ratio is printed with its 95 % interval from
bootstrapping the windows. Needs the GPU that the database was recorded on, or one like it.
"""

from __future__ import annotations

import argparse
import ast
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from engine.capture import parse_target
from engine.capture.configurations import configure
from engine.capture.models import arguments_of, build_model, layer_of, model_inputs
from engine.capture.target import ModelTarget, ParsedTarget
from engine.codegen import is_generated, render
from engine.runtime import Launch, assemble_plan, compile_source
from engine.runtime.cuda_graph import capture
from engine.runtime.inputs import make_inputs
from engine.runtime.toolchain import read_target
from engine.store import RecordedGrouping, Store, StoredRun

WINDOWS = 40
LAUNCHES_US = 2000.0


def winner(store: Store, run: StoredRun) -> RecordedGrouping | None:
    """The run's grouping whose assembled graph was fastest."""
    timed = [item for item in store.recorded_groupings(run.id) if item.whole_us is not None]
    return min(timed, key=lambda item: item.whole_us or 0.0, default=None)


def tuned_launch(store: Store, run: StoredRun, item: RecordedGrouping, folder: Path) -> Launch:
    """The winner, built and bound to inputs of its own."""
    pdl = item.pdl_us is not None and item.pdl_us == item.whole_us
    recorded = store.assembled(item.grouping, run.context_key, pdl=pdl)
    assert recorded is not None
    device = torch.device("cuda")
    target = read_target()
    compiled = {
        key: compile_source(render(kernel, recorded.schedules[key], target, pdl=pdl), target, folder)
        for key, (kernel, _) in item.grouping.kernel_counts().items()
        if is_generated(kernel)
    }
    inputs = make_inputs(item.grouping.input_specs(), 0, device)
    return assemble_plan(item.grouping, compiled, inputs).launch


class _Draws(ast.NodeTransformer):
    """Replaces each call that draws a tensor by a name, and keeps the calls."""

    def __init__(self) -> None:
        self.drawn: list[ast.expr] = []

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("randn", "rand"):
            self.drawn.append(node)
            return ast.Name(f"t{len(self.drawn) - 1}", ast.Load())
        return self.generic_visit(node)


def expression(code: str) -> tuple[Callable[..., Any], list[torch.Tensor]]:
    """The user's expression as a function of the tensors it draws, and those tensors."""
    draws = _Draws()
    body = ast.parse(code, mode="eval")
    body.body = draws.visit(body.body)
    scope: dict[str, Any] = {"torch": torch, "F": F, "nn": nn}
    tensors = [eval(ast.unparse(call), scope) for call in draws.drawn]
    names = ", ".join(f"t{number}" for number in range(len(tensors)))
    exec(f"def program({names}):\n    return {ast.unparse(body)}", scope)
    return scope["program"], tensors


def model(target: ModelTarget) -> Bound:
    """The call of a model, or of its layer, as transformers has it, with random weights on the GPU."""
    with torch.no_grad():
        built, _ = build_model(configure(target.name), target.options, "cuda")
        inputs = model_inputs(built, target.options)
        if target.options.layer is None:
            return Bound(built, (), inputs)
        layer = layer_of(built, target.options.layer)
        return Bound(layer, *arguments_of(layer, lambda: built(**inputs)))


@dataclass(frozen=True, slots=True)
class Bound:
    """A function with its arguments."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self) -> Any:
        with torch.no_grad():
            return self.function(*self.args, **self.kwargs)


def bound(text: str) -> Bound:
    """What a recorded target calls, ready to be called on the GPU. Raises ValueError for a function of a file."""
    target = parse_target(text)
    if isinstance(target, ModelTarget):
        return model(target)
    if isinstance(target, ParsedTarget):
        program, tensors = expression(text)
        return Bound(program, tuple(tensors), {})
    raise ValueError("functions of a file are not compared")


def per_launch_us(graph: torch.cuda.CUDAGraph, launches: int) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / launches


def interleaved(calls: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Per-launch times in us of each call, one a window, in random order within each round."""
    graphs: dict[str, tuple[torch.cuda.CUDAGraph, int]] = {}
    for name, call in calls.items():
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        rough = per_launch_us(capture(call, 5), 5)
        launches = max(1, min(300, int(LAUNCHES_US / rough)))
        graphs[name] = (capture(call, launches), launches)
    times: dict[str, list[float]] = {name: [] for name in calls}
    order = random.Random(0)
    for round_number in range(WINDOWS + 5):
        names = list(graphs)
        order.shuffle(names)
        for name in names:
            us = per_launch_us(*graphs[name])
            if round_number >= 5:
                times[name].append(us)
    return times


def ratio_interval(ours: list[float], peer: list[float]) -> tuple[float, float, float]:
    """Ratio of medians with its 2.5 and 97.5 percentiles over 2000 paired bootstrap draws."""
    rng = np.random.default_rng(0)
    a, b = np.array(ours), np.array(peer)
    picks = rng.integers(0, len(a), (2000, len(a)))
    ratios = np.median(a[picks], axis=1) / np.median(b[picks], axis=1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return median(ours) / median(peer), float(low), float(high)


def compare_program(store: Store, run: StoredRun, folder: Path, with_compile: bool) -> None:
    item = winner(store, run)
    if item is None:
        print(f"{run.target}: no assembled winner recorded")
        return
    call = bound(run.target)
    calls: dict[str, Callable[[], Any]] = {
        "emmy": tuned_launch(store, run, item, folder),
        "eager": call,
    }
    if with_compile:
        calls["compile"] = Bound(torch.compile(call.function, dynamic=False), call.args, call.kwargs)
    times = interleaved(calls)
    print(f"{run.target}\n  kernels {len(item.grouping.calls)}, emmy {median(times['emmy']):.2f} us")
    for peer in calls:
        if peer != "emmy":
            ratio, low, high = ratio_interval(times["emmy"], times[peer])
            print(f"  {peer:8} {median(times[peer]):9.2f} us   emmy/{peer} {ratio:.3f} [{low:.3f}, {high:.3f}]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", type=Path)
    parser.add_argument("--compile", action="store_true", help="also against torch.compile")
    parser.add_argument("--target", default="", help="only programs whose text contains this")
    arguments = parser.parse_args()
    with Store.open(arguments.database, read_only=True) as store, tempfile.TemporaryDirectory() as folder:
        latest = {run.target: run for run in store.runs() if arguments.target in run.target}
        for run in latest.values():
            compare_program(store, run, Path(folder), arguments.compile)


if __name__ == "__main__":
    main()
