"""Captured programs against torch itself: the graph is evaluated on what the code computes eagerly."""

from __future__ import annotations

import math
import warnings
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from engine.capture.errors import (
    DataDependentError,
    NoTensorInputError,
    UnsupportedOpError,
    UnsupportedTensorError,
    UserCodeError,
)
from engine.capture.target import parse_target
from engine.capture.trace import trace
from engine.grouping import grouping_space
from engine.ir import Graph
from engine.ir.plan import Program
from tests.ir.evaluate import evaluate

warnings.filterwarnings("ignore", category=FutureWarning)
pytestmark = pytest.mark.filterwarnings("ignore")

TENSORS = {
    "x": "torch.empty(6, 16, device='cuda')",
    "y": "torch.empty(6, 16).cuda()",
    "w": "torch.empty(10, 16, device='cuda')",
    "wt": "torch.empty(16, 10).t()",
    "b": "torch.empty(10)",
    "v": "torch.empty(16)",
    "x3": "torch.empty(2, 3, 16)",
    "m": "torch.empty(2, 16, 5)",
    "q": "torch.empty(2, 4, 5, 8)",
    "k": "torch.empty(2, 4, 5, 8)",
    "xb": "torch.empty(6, 16, dtype=torch.bfloat16)",
    "vb": "torch.empty(16, dtype=torch.bfloat16)",
}
EXPECTED = {
    "torch.matmul(x, w.T)": ["matmul"],
    "torch.relu(x @ w.T + b)": ["matmul+add+relu"],
    "F.linear(x3, w, b)": ["matmul+add"],
    "F.linear(x3, wt.contiguous(), b)": ["matmul+add"],
    "F.gelu(F.linear(x3, w, b))": ["matmul+add+gelu"],
    "F.gelu(F.linear(x, w, b), approximate='tanh')": ["matmul+add+gelu_tanh"],
    "F.linear(x.view(2, 3, 16), w)": ["matmul"],
    "F.linear(x3, w, b).view(6, 10).mul(2)": ["matmul+add+mul"],
    "torch.addmm(b, x, w.T, beta=0.5, alpha=2.0)": ["matmul+mul+add"],
    "torch.bmm(x3, m)": ["matmul"],
    "torch.baddbmm(x3 @ m, x3, m)": ["matmul+add"],
    "torch.matmul(q, k.transpose(-1, -2))": ["matmul"],
    "torch.matmul(x3, m[0])": ["matmul"],
    "torch.einsum('bij,kj->bik', x3, w)": ["matmul"],
    "torch.relu((x * 2) @ w.T)": ["mul+matmul+relu"],
    "x.T.matmul(y)": ["matmul"],
    "torch.softmax(x, -1)": ["softmax"],
    "torch.softmax(x, 0)": ["softmax"],
    "torch.softmax(xb, -1)": ["softmax"],
    "torch.log_softmax(x3, -1)": ["log_softmax"],
    "F.rms_norm(x, (16,))": ["rms_norm"],
    "F.rms_norm(xb, (16,), vb)": ["rms_norm"],
    "F.layer_norm(x3, (16,), v, v)": ["layer_norm"],
    "F.layer_norm(xb, (16,), vb)": ["layer_norm"],
    "F.layer_norm(x3, (3, 16))": ["layer_norm"],
    "(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)).mul(v)": ["rms_norm"],
    "x.sum(-1)": ["sum"],
    "x.mean(0)": ["mean"],
    "x3.amax((1, 2))": ["amax"],
    "x3.sum()": ["sum"],
    "x3.mean(1, keepdim=True).exp()": ["mean+exp"],
    "x.sum(-1).div(3)": ["sum+div"],
    "torch.add(x.sum(-1), b[:6])": ["sum+add"],
    "torch.add(x.sum(-1)[:, None].expand(6, 16), x)": ["sum+add"],
    "torch.var(x, -1)": ["mean+sub+mul+sum"],
    "torch.std(x, -1, correction=0)": ["mean+sub+mul+sum+sqrt"],
    "F.normalize(x, dim=-1)": ["mul+sum+sqrt+maximum+div"],
    "torch.mv(x, v)": ["mul+sum"],
    "(x * y + v).sigmoid()": ["mul+add+sigmoid"],
    "torch.where(x > 0.5, x, y * 2)": ["gt+mul+where"],
    "F.silu(x).mul(y)": ["silu+mul"],
    "x.clamp(0.4, 0.9).pow(2)": ["maximum+minimum+mul"],
    "torch.outer(b, v)": ["mul"],
    "torch.rsub(x, 1.0, alpha=2)": ["mul+sub"],
    "torch.relu(x.t())": ["relu"],
    "torch.add(x.exp().t(), y.t())": ["exp+add"],
    "torch.reshape(x.exp().t(), (4, 24))": ["exp", "copy"],
    "F.relu(x[1:3, ::2])": ["relu"],
    "torch.chunk(x, 2, -1)[1].mul(2)": ["mul"],
    "x.expand(3, 6, 16).mul(2.0)": ["mul"],
    "F.softmax(torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(8), -1).matmul(k)": ["attention"],
    "F.layer_norm(F.linear(x3, w, b) + F.linear(x3, w), (10,), b, b)": ["matmul+add", "layer_norm"],
    "tuple([x.exp(), x.sum(-1), x])": ["exp", "sum"],
}


@cache
def eager(expression: str) -> tuple[dict[str, torch.Tensor], tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(0)
    values = {}
    for name, made in TENSORS.items():
        values[name] = eval(made.replace("device='cuda'", "device='cpu'").replace(".cuda()", ""))
        values[name].copy_(torch.rand(values[name].shape, generator=generator) + 0.3)
    found = eval(expression, {**values, "torch": torch, "F": nn.functional, "nn": nn, "math": math})
    return values, found if isinstance(found, tuple) else (found,)


def captured(code: str) -> Program:
    return trace(parse_target(code), "cuda")


def storages(graph: Graph, values: dict[str, torch.Tensor]) -> list[np.ndarray]:
    """The storage of each input, by its label."""
    return [
        torch.as_strided(values[label], (spec.storage_elements,), (1,), 0).double().numpy().copy()
        for label, spec in zip(graph.labels, graph.input_specs(), strict=True)
    ]


@pytest.mark.parametrize("expression", EXPECTED)
def test_a_capture_computes_what_torch_computes_in_the_kernels_one_expects(expression: str) -> None:
    program = captured("\n".join(f"{name} = {made}" for name, made in TENSORS.items()) + "\n" + expression)
    values, wanted = eager(expression)
    found = evaluate(program.graph, storages(program.graph, values))
    for tensor, array in zip(wanted, found, strict=True):
        rough = 2e-2 if tensor.dtype == torch.bfloat16 else 1e-5
        assert tuple(tensor.shape) == array.shape
        np.testing.assert_allclose(array, tensor.double().numpy(), rtol=rough, atol=rough)
    for spec, tensor in zip(program.graph.output_specs(), wanted, strict=True):
        assert spec.dtype == str(tensor.dtype).removeprefix("torch.")
    assert most_fused(program.graph) == EXPECTED[expression]


def most_fused(graph: Graph) -> list[str]:
    space = grouping_space(graph)
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[0])
    return [call.kernel.label for call in space.grouping(path).calls]


def test_the_call_of_the_readme() -> None:
    program = captured("torch.matmul(torch.randn(512,512,device='cuda'), torch.randn(512,512,device='cuda'))")
    assert [op.kind for op in program.graph.ops] == ["input", "input", "matmul"]
    assert program.graph.ops[2].attribute("allow_tf32") is False
    assert program.graph.output_specs()[0].shape == (512, 512)
    assert program.device == "cuda"


@pytest.mark.parametrize(
    ("created", "dtype", "strides", "shape"),
    [
        ("torch.randn(16, 8, device='cuda', dtype=torch.float16).T", "float16", (1, 8), (8, 16)),
        ("torch.randn(8, 16).cuda().bfloat16()", "bfloat16", (16, 1), (8, 16)),
        ("torch.zeros(8, 32)[:, ::2].to('cuda', torch.float64)", "float64", (16, 1), (8, 16)),
        ("torch.zeros(8, 32)[:, ::2]", "float32", (32, 2), (8, 16)),
        ("torch.rand_like(torch.empty(8, 16, dtype=torch.half, device='cuda:0'))", "float16", (16, 1), (8, 16)),
        ("torch.tensor([[1.0, 2.0]])", "float32", (2, 1), (1, 2)),
        ("torch.arange(4.0)", "float32", (1,), (4,)),
        ("torch.full((3, 4), 2.0, dtype=torch.bfloat16)", "bfloat16", (4, 1), (3, 4)),
        ("torch.randn(4, 8, generator=torch.Generator(device='cuda'), device='cuda')", "float32", (8, 1), (4, 8)),
    ],
)
def test_what_a_call_creates_becomes_an_input(
    created: str, dtype: str, strides: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    (spec,) = captured(f"torch.exp({created})").graph.input_specs()
    assert (spec.dtype, spec.shape) == (dtype, shape)
    assert [s for s, e in zip(spec.strides, shape, strict=True) if e > 1] == [
        s for s, e in zip(strides, shape, strict=True) if e > 1
    ]


def test_parameters_and_captured_tensors_become_inputs() -> None:
    linear = captured("layer = nn.Linear(16, 32).cuda().bfloat16()\nlayer(torch.randn(2, 4, 16).cuda().bfloat16())")
    assert sorted(linear.graph.labels) == ["layer.bias", "layer.weight", "x0"]
    assert most_fused(linear.graph) == ["matmul+add"]
    inline = captured("nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))(torch.randn(4, 16))")
    assert most_fused(inline.graph) == ["matmul+add+relu", "matmul+add"]
    closed = captured("def f(x): return torch.relu(x @ w)\nw = torch.randn(16, 16)\nf(torch.rand(4, 16))")
    assert len(closed.graph.inputs) == 2
    assert most_fused(closed.graph) == ["matmul+relu"]


def test_the_device_is_the_one_that_the_text_names() -> None:
    assert captured("torch.exp(torch.randn(4, device='cuda:1'))").device == "cuda:1"
    assert captured("nn.Linear(4, 4, device='cuda')(torch.randn(2, 4, device='cuda:1'))").device == "cuda:1"
    assert captured("torch.exp(torch.randn(4))").device == "cuda"


@pytest.mark.parametrize(
    "setting",
    ["torch.backends.cuda.matmul.allow_tf32 = True", "torch.set_float32_matmul_precision('high')"],
)
def test_tf32_is_allowed_only_by_the_code(setting: str) -> None:
    before = torch.get_float32_matmul_precision()
    try:
        program = captured(f"{setting}\ntorch.mm(torch.randn(8, 8), torch.randn(8, 8))")
        half = captured("torch.mm(torch.randn(8, 8).half(), torch.randn(8, 8).half())")
    finally:
        torch.set_float32_matmul_precision(before)
    assert program.graph.ops[2].attribute("allow_tf32") is True
    assert half.graph.ops[2].attribute("allow_tf32") is False


@pytest.mark.parametrize(
    ("code", "error", "sentence"),
    [
        ("torch.poisson(torch.rand(4, 4))", UnsupportedOpError, "aten.poisson"),
        ("torch.linalg.inv(torch.randn(4, 4))", UnsupportedOpError, "aten.linalg_inv_ex"),
        ("torch.randn(8, 8).cuda()", NoTensorInputError, "only creates"),
        ("nn.Linear(3, 4)", NoTensorInputError, "only creates"),
        ("F.dropout(torch.randn(4), 0.5, False)", NoTensorInputError, "computes nothing"),
        ("math.sqrt(2)", UnsupportedTensorError, "not a tensor"),
        ("torch.exp(torch.randn(0, 4))", UnsupportedTensorError, "no elements"),
        ("torch.exp(torch.randn(4, dtype=torch.complex64))", UnsupportedTensorError, "complex64"),
        ("torch.add(torch.randn(4), undefined)", UserCodeError, "NameError: name 'undefined'"),
        ("torch.mm(torch.randn(3, 4), torch.randn(5, 6))", UserCodeError, "RuntimeError"),
        ("import sys; sys.exit(3); f()", UserCodeError, "SystemExit"),
        ("x = torch.randn(4)\nif x.sum() > 0: x = x + 1\ntorch.exp(x)", DataDependentError, "only shapes are known"),
        ("(lambda x: x if x.sum() > 0 else -x)(torch.randn(4))", DataDependentError, "only shapes are known"),
        ("torch.nonzero(torch.randn(4))", DataDependentError, "only shapes are known"),
        ("torch.exp(torch.randn(4)).sum().item()", DataDependentError, "only shapes are known"),
    ],
)
def test_what_can_not_be_captured_is_one_sentence(code: str, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error) as raised:
        captured(code)
    text = str(raised.value)
    assert sentence in text
    assert "\n" not in text
    assert text.endswith(".")


def test_a_modules_parameters_are_weights_and_tensors_are_not() -> None:
    graph = captured("nn.Linear(8, 4)(torch.randn(2, 8))").graph
    assert [graph.labels[place] for place in graph.weights] == ["linear0.weight", "linear0.bias"]
    assert captured("F.linear(torch.randn(2, 8), torch.randn(4, 8))").graph.weights == ()


def test_a_filled_half_holds_what_its_dtype_keeps_and_a_number_beside_it_is_exact() -> None:
    code = (
        "def f(x):\n    return x * 0.1 + torch.full((4,), 0.1, dtype=x.dtype)\nf(torch.randn(4, dtype=torch.bfloat16))"
    )
    graph = captured(code).graph
    numbers = {op.attribute("value") for op in graph.ops if op.kind == "constant"}
    assert numbers == {0.1, 0.10009765625}


def test_code_may_write_to_what_it_made_itself() -> None:
    program = trace(parse_target("F.relu(torch.randn(8, 16), inplace=True)"), "cuda")
    assert [op.kind for op in program.graph.ops if op.kind != "input"] == ["relu"]
