"""An exported module on a GPU, in a process without this package: eager's outputs, as a graph too, also with dependent
launches."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from engine.deploy import ModuleOrigin, deployment, python_module
from engine.grouping import grouping_space
from engine.ir import Graph, GraphBuilder, TensorSpec
from engine.ir.plan import Program
from engine.prior import ColdModel
from engine.runtime import read_context, read_target
from engine.store import Store


def spec(*shape: int) -> TensorSpec:
    return TensorSpec.contiguous(shape, "bfloat16")


def mlp() -> Graph:
    """A norm, a product with a turned weight, an activation, a second product: kernels with descriptors in a row."""
    b = GraphBuilder()
    x, gain = b.input(spec(512, 1024), "x"), b.input(spec(1024), "norm.weight", weight=True)
    up, down = (
        b.input(spec(4096, 1024), "up.weight", weight=True),
        b.input(spec(1024, 4096), "down.weight", weight=True),
    )
    wide = b.add("cast", x, dtype="float32")
    mean = b.add("mean", b.add("mul", wide, wide), axes=(1,))
    scale = b.add("rsqrt", b.add("add", mean, b.constant(1e-6)))
    normed = b.add("mul", b.add("cast", b.add("mul", wide, scale), dtype="bfloat16"), gain)
    hidden = b.add("silu", b.add("matmul", normed, b.view(up, (1024, 4096), (1, 1024))))
    return b.build(b.add("add", x, b.add("matmul", hidden, b.view(down, (4096, 1024), (1, 4096)))))


CHECK = """
import sys
sys.modules['engine'] = sys.modules['emmy_tui'] = None
import torch, tuned
torch.manual_seed(0)
def make(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) / shape[-1] ** 0.5
x, gain, up, down = 30 * make(512, 1024), make(1024) * 32, make(4096, 1024), make(1024, 4096)
def eager(x):
    normed = torch.nn.functional.rms_norm(x.float(), (1024,), eps=1e-6).to(torch.bfloat16) * gain
    return x + torch.nn.functional.silu(normed @ up.T) @ down.T
def error(found, wanted):
    return ((found.float() - wanted.float()).norm() / wanted.float().norm()).item()
assert error(tuned.run(x, gain, up, down), eager(x)) < 1e-2
graph, out = tuned.capture(x, gain, up, down)
x.copy_(30 * make(512, 1024))
graph.replay()
torch.cuda.synchronize()
assert error(out, eager(x)) < 1e-2
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
for _ in range(50):
    graph.replay()
begin.record()
for _ in range(200):
    graph.replay()
end.record()
torch.cuda.synchronize()
print(f"{begin.elapsed_time(end) / 200 * 1000:.2f} us a call")
"""


@pytest.mark.parametrize("pdl", [False, True])
def test_a_module_runs_alone(tmp_path: Path, pdl: bool) -> None:
    target, context = read_target(0), read_context(0)
    if pdl and target.capability < 90:
        pytest.skip("programmatic dependent launch exists from capability 90 on")
    program = Program(mlp(), "mlp")
    space = grouping_space(program.graph)
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[0])
    with Store.open(tmp_path / "tune.db") as store:
        store.record_context(context, target)
        chosen = deployment(space.grouping(path), store, context.key, target, ColdModel())
    text = python_module(program, replace(chosen, pdl=pdl), ModuleOrigin("", "", (), context))
    (tmp_path / "tuned.py").write_text(text)
    (tmp_path / "check.py").write_text(textwrap.dedent(CHECK))
    child = subprocess.run(
        [sys.executable, "check.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        check=False,
    )
    assert child.returncode == 0, child.stderr[-3000:]
    assert "us a call" in child.stdout
