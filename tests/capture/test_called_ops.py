"""Ops that no kernel family generates run as torch's own, and composite ones are written in ops that are generated."""

from __future__ import annotations

from functools import cache

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from engine.capture.target import parse_target
from engine.capture.trace import trace
from engine.codegen import declined_because
from engine.grouping import grouping_space
from engine.ir import Graph
from engine.ir.verify_plan import verify_kernel
from engine.runtime.assemble import evaluate_plan
from engine.runtime.reference import evaluate

pytestmark = pytest.mark.filterwarnings("ignore")

TENSORS = {
    "x": "torch.empty(4, 8)",
    "h": "torch.empty(4, 8, dtype=torch.float16)",
    "d": "torch.empty(4, 8, dtype=torch.float64)",
    "e": "torch.empty(2, 3, 4, 8, dtype=torch.float64)",
    "image": "torch.empty(2, 6, 8, 8)",
    "i": "torch.empty(4, 8, dtype=torch.int64)",
    "w": "torch.empty(6)",
    "s": "torch.empty(6)",
}
CALLED = {
    "torch.sort(x)[0]": {"aten.sort.default"},
    "torch.sort(x.exp(), descending=True)[1]": {"aten.sort.default"},
    "torch.argsort(x, 0)": {"aten.sort.default"},
    "torch.sort(x)[0] + torch.sort(x)[1]": {"aten.sort.default"},
    "torch.topk(x, 3)[0]": {"aten.topk.default"},
    "torch.round(x * 3)": {"aten.round.default"},
    "torch.round(x, decimals=2)": {"aten.round.decimals"},
    "torch.prod(x)": {"aten.prod.default"},
    "torch.prod(x, 1) * 2": {"aten.prod.dim_int"},
    "torch.linalg.svdvals(x)": {"aten._linalg_svd.default"},
    "torch.linalg.svd(d, full_matrices=False)[1]": {"aten._linalg_svd.default"},
    "torch.linalg.qr(d)[1]": {"aten.linalg_qr.default"},
    "torch.linalg.eigvalsh(d @ d.T)": {"aten._linalg_eigh.default", "aten.matmul.default"},
    "torch.linalg.det(d @ d.T)": {"aten._linalg_det.default", "aten.matmul.default"},
    "torch.linalg.vector_norm(x, 1, -1)": {"aten.linalg_vector_norm.default"},
    "torch.max(x, 1)[0]": set(),
    "torch.max(x, 1, keepdim=True)[1]": {"aten.max.dim"},
    "torch.median(x, 1)[0]": {"aten.median.dim"},
    "torch.cummax(x, 0)[0]": {"aten.cummax.default"},
    "F.max_pool2d(image, 2)": {"aten.max_pool2d_with_indices.default"},
    "torch.any(x > 0, 1)": {"aten.any.dim"},
    "torch.fmod(x, 2)": {"aten.fmod.Scalar"},
    "torch.tan(x) + torch.trunc(x) * torch.atan(x)": {"aten.tan.default", "aten.trunc.default", "aten.atan.default"},
    "torch.cdist(x, x.exp())": {"aten._cdist_forward.default"},
    "(i << 1) & 3": {"aten.__lshift__.Scalar", "aten.bitwise_and.Scalar"},
    "torch.diagonal(x.exp())": {"aten.diagonal.default"},
    "i // 3": {"aten.div.Tensor_mode"},
    "i // (i.abs() + 1)": {"aten.div.Tensor_mode"},
    "torch.div(i, 3, rounding_mode='trunc')": {"aten.div.Tensor_mode"},
    "torch.div(x, 0.3, rounding_mode='trunc')": {"aten.div.Tensor_mode"},
    "x // 0.7": {"aten.div.Tensor_mode"},
    "torch.gather(x, 0, i % 4)": {"aten.remainder.Scalar"},
    "torch.gather(x.exp().T, 1, (i % 4).T[:5])": {"aten.remainder.Scalar"},
    "F.cross_entropy(x, i[:, 0] % 8)": {"aten.remainder.Scalar"},
    "F.dropout(x, 0.5, False) * 2": set(),
    "F.batch_norm(image, w, s.abs(), w, s)": set(),
    "F.batch_norm(image.half(), w, s.abs())": set(),
    "F.instance_norm(image)": set(),
    "F.group_norm(image, 3, w, s)": set(),
    "F.group_norm(image.half(), 2)": set(),
    "d @ d.T": {"aten.matmul.default"},
    "torch.addmm(d[:, :4], d, d.T) * 2": {"aten.matmul.default"},
    "F.linear(e, d, d[:, 0])": {"aten.matmul.default"},
    "e @ e.transpose(-1, -2)": {"aten.matmul.default"},
    "F.scaled_dot_product_attention(e, e, e, attn_mask=torch.arange(4) < i[:, :1])": {"aten.matmul.default"},
    "written(x)": set(),
    "shifted(x)": {"aten.slice_scatter.default"},
    "cleared(x)": set(),
    "counted(h)": set(),
}
"""Expressions, and the ATen ops that they call."""
FUNCTIONS = """
def written(x):
    y = x.clone()
    y[0] = 0
    return y

def shifted(x):
    y = x.clone()
    y[1:3] = x[:2] * 2
    return y

def cleared(x):
    y = x * 2
    y[y > 0] = 0.5
    return y

def counted(x):
    y = x.clone()
    y[:, 0] += 1
    y[0, 0] = x[1, 1]
    return y
"""


def values() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(5)
    made = {}
    for name, text in TENSORS.items():
        tensor = eval(text)
        drawn = torch.randn(tensor.shape, generator=generator) * (9 if name == "i" else 1)
        made[name] = drawn.to(tensor.dtype)
    return made


@cache
def captured(expression: str) -> Graph:
    created = "\n".join(f"{name} = {made}" for name, made in TENSORS.items())
    names = ", ".join(TENSORS)
    code = f"{FUNCTIONS}\ndef f({names}): return {expression}\n{created}\nf({names})"
    return trace(parse_target(code), "cuda").graph


def wanted(expression: str, given: dict[str, torch.Tensor]) -> torch.Tensor:
    space = {**given, "torch": torch, "F": F, "nn": nn}
    exec(FUNCTIONS, space)
    result = eval(expression, space)
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.parametrize("expression", CALLED)
def test_a_program_with_any_op_computes_what_torch_computes(expression: str) -> None:
    graph, given = captured(expression), values()
    right = wanted(expression, given)
    tensors = [given[label] for label in graph.labels]
    rough = 1e-2 if right.dtype == torch.float16 else 1e-5
    for dtype in (torch.float64, None):
        (found,) = evaluate(graph, tensors, dtype=dtype)
        assert found.shape == right.shape
        torch.testing.assert_close(found.double(), right.double(), rtol=rough, atol=rough)
    assert graph.output_specs()[0].dtype == str(right.dtype).removeprefix("torch.")
    called = {str(op.attribute("op")) for op in graph.ops if op.kind == "extern"}
    assert called == CALLED[expression]


@pytest.mark.parametrize("expression", CALLED)
def test_such_a_program_is_divided_into_kernels_that_can_run(expression: str) -> None:
    graph, given = captured(expression), values()
    space, path = grouping_space(graph), ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[0])
    plan = space.grouping(path)
    assert [declined_because(verify_kernel(call.kernel)) for call in plan.calls] == [None] * len(plan.calls)
    tensors = [given[label] for label in graph.labels]
    (found,) = evaluate_plan(plan, tensors, lambda body, inputs: evaluate(body, inputs))
    right = wanted(expression, given)
    rough = 1e-2 if right.dtype == torch.float16 else 1e-5
    torch.testing.assert_close(found.double(), right.double(), rtol=rough, atol=rough)
