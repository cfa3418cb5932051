"""Kernels that the prior is asked about, and what an H200 answered for some of their candidates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from engine.ir import GraphBuilder, Kernel, TensorSpec
from engine.vocabulary import KnobValue


def matmul(
    m: int, n: int, k: int, dtype: str = "bfloat16", *, batch: int = 0, bias: bool = False, allow_tf32: bool = False
) -> Kernel:
    graph = GraphBuilder()
    lead = (batch,) if batch else ()
    left = graph.input(TensorSpec.contiguous((*lead, m, k), dtype))
    right = graph.input(TensorSpec.contiguous((*lead, k, n), dtype))
    out = graph.add("matmul", left, right, allow_tf32=allow_tf32)
    if bias:
        out = graph.add("gelu", graph.add("add", out, graph.input(TensorSpec.contiguous((n,), dtype))))
    return Kernel("contraction", graph.build(out), "matmul")


def softmax(rows: int, columns: int, dtype: str = "bfloat16") -> Kernel:
    graph = GraphBuilder()
    x = graph.add("cast", graph.input(TensorSpec.contiguous((rows, columns), dtype)), dtype="float32")
    e = graph.add("exp", graph.add("sub", x, graph.add("amax", x, axes=(1,))))
    out = graph.add("cast", graph.add("div", e, graph.add("sum", e, axes=(1,))), dtype=dtype)
    return Kernel("rowwise", graph.build(out), "softmax")


def silu_mul(rows: int, columns: int, dtype: str = "bfloat16") -> Kernel:
    graph = GraphBuilder()
    x, y = (graph.input(TensorSpec.contiguous((rows, columns), dtype)) for _ in range(2))
    return Kernel("pointwise", graph.build(graph.add("mul", graph.add("silu", x), y)), "silu_mul")


@dataclass(frozen=True)
class Problem:
    name: str
    kernel: Kernel
    schedules: tuple[dict[str, KnobValue], ...]
    times_us: tuple[float, ...]


def measured_problems() -> list[Problem]:
    """About 35 timed candidates each of 31 kernels: the fastest six, and the rest spread evenly over the ranks.

    One H200, torch 2.11, Triton 3.6: hand-written kernels of the same structure as the generated ones, median of
    CUDA-graph replays, L2 warm.
    """
    makers = {"contraction": matmul, "softmax": softmax, "silu_mul": silu_mul}
    problems = []
    for item in json.loads((Path(__file__).parent / "measured_h200.json").read_text()):
        schedules = tuple({"PERSISTENT": False, **dict(zip(item["knobs"], row, strict=False))} for row in item["rows"])
        kernel = makers[item["kernel"]](*item["shape"], item["dtype"])
        name = (
            f"{item['kernel']} {'x'.join(map(str, item['shape']))} {item['dtype']} {schedules[0].get('PRECISION', '')}"
        )
        problems.append(Problem(name.strip(), kernel, schedules, tuple(row[-1] for row in item["rows"])))
    return problems
