"""Attention, positions, joins and calls, written as code: each graph computes what torch computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from engine.capture.errors import UnsupportedOpError
from engine.capture.target import parse_target
from engine.capture.trace import trace
from engine.ir import Graph
from engine.ir.attention import attention_chain
from engine.ir.structural_key import canonical_form
from engine.runtime.reference import evaluate

pytestmark = pytest.mark.filterwarnings("ignore")

TENSORS = {
    "q": "torch.empty(2, 8, 6, 16)",
    "k": "torch.empty(2, 4, 6, 16)",
    "v": "torch.empty(2, 4, 6, 24)",
    "one": "torch.empty(2, 1, 6, 16)",
    "qb": "torch.empty(2, 8, 6, 16, dtype=torch.bfloat16)",
    "long": "torch.empty(2, 8, 9, 16)",
    "bias": "torch.empty(1, 1, 6, 6)",
    "biases": "torch.empty(1, 8, 6, 6)",
    "table": "torch.empty(11, 16)",
    "ids": "torch.empty(2, 6, dtype=torch.int64)",
    "x": "torch.empty(2, 6, 8, 16)",
    "image": "torch.empty(2, 3, 8, 8)",
    "filters": "torch.empty(5, 3, 3, 3)",
}
SDPA = "F.scaled_dot_product_attention"
REPEATED = "[:, :, None].expand(2, 4, 2, 6, {0}).reshape(2, 8, 6, {0})"
HALVES = "torch.cat([-{0}[..., 8:], {0}[..., :8]], -1)"
EXPRESSIONS = {
    f"{SDPA}(q, q, q)": 0,
    f"{SDPA}(q, q, q, is_causal=True)": 0,
    f"{SDPA}(q, long, long, is_causal=True)": 0,
    f"{SDPA}(long, q, q, is_causal=True)": 0,
    f"{SDPA}(q[0], q[0], q[0], scale=0.3)": 0,
    f"{SDPA}(q[0, 0], q[0, 1], q[1, 1])": 0,
    f"{SDPA}(q, q, q, attn_mask=bias)": 0,
    f"{SDPA}(q, q, q, attn_mask=biases)": 0,
    f"{SDPA}(q, k, v, attn_mask=biases, enable_gqa=True)": 0,
    f"{SDPA}(q, k, v, attn_mask=bias[0, 0] > 0, enable_gqa=True)": 0,
    f"{SDPA}(q, k, v, is_causal=True, enable_gqa=True, scale=1.0)": 0,
    f"{SDPA}(q, one, one, is_causal=True, enable_gqa=True)": 0,
    f"{SDPA}(q, k{REPEATED.format(16)}, v{REPEATED.format(24)}, is_causal=True)": 0,
    f"{SDPA}(qb, qb, qb, is_causal=True)": 0,
    f"{SDPA}(x.transpose(1, 2), k.exp(), v.exp(), enable_gqa=True).transpose(1, 2).reshape(2, 6, 192)": 1,
    f"x.transpose(1, 2) * 2 + {HALVES.format('x.transpose(1, 2)')} * bias[0, :, :, :1]": 0,
    HALVES.format("x"): 0,
    HALVES.format("(x.exp().transpose(1, 2))"): 0,
    "torch.cat([x[..., 8:], x[..., :8]], -1).mul(2)": 0,
    "torch.cat([-x[..., 12:], -x[..., :12]], -1)": 0,
    "torch.cat([x[..., 8:], -x[..., :8]], -1)": 0,
    "torch.cat([x[..., 9:], x[..., :8]], -1).mul(2)": 0,
    "torch.cat([-x[..., :8], x[..., 8:]], -1).mul(2)": 0,
    "torch.cat([x, x.exp()], 1)": 0,
    "torch.cat([ids, table[:2, :3] > 0], 1)": 0,
    "torch.roll(x.exp(), (2, -3), (1, 3))": 0,
    "F.embedding(ids, table)": 0,
    "table[ids].mul(2)": 0,
    "torch.index_select(table, 0, ids[0]).exp()": 0,
    "table[ids[0], :].mul(2)": 0,
    "torch.arange(6) * ids": 0,
    "torch.arange(2, 14, 2) + ids": 0,
    "torch.arange(6, dtype=torch.float32)[:, None] * table[:6]": 0,
    "torch.where(torch.arange(6)[:, None] >= torch.arange(6), bias, -1.0)": 0,
    "F.relu(F.conv2d(image, filters, padding=1))": 0,
    "F.conv2d(image.exp(), filters, filters[:, 0, 0, 0], stride=2)": 0,
    "torch.cumsum(x, 1, dtype=torch.float64).mul(2)": 0,
    "F.avg_pool2d(image, 2)": 0,
    "F.pad(image, (1, 2), value=3.0)": 0,
}


def values() -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    made: dict[str, Any] = {}
    for name, text in TENSORS.items():
        made[name] = eval(text)
        drawn = torch.randn(made[name].shape, generator=generator)
        made[name].copy_(drawn.abs() * 3 if name == "ids" else drawn)
    return made


def captured(expression: str) -> Graph:
    names = ", ".join(TENSORS)
    created = "\n".join(f"{name} = {made}" for name, made in TENSORS.items())
    return trace(parse_target(f"def f({names}): return {expression}\n{created}\nf({names})"), "cuda").graph


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_capture_computes_what_torch_computes(expression: str) -> None:
    graph = captured(expression)
    given = values()
    wanted = eval(expression, {**given, "torch": torch, "F": F, "nn": nn})
    for dtype in (torch.float64, None):
        (found,) = evaluate(graph, [given[label] for label in graph.labels], dtype=dtype)
        assert found.shape == wanted.shape
        rough = 3e-2 if wanted.dtype == torch.bfloat16 else 1e-5
        torch.testing.assert_close(found.double(), wanted.double(), rtol=rough, atol=rough)
    assert graph.output_specs()[0].dtype == str(wanted.dtype).removeprefix("torch.")
    copies = [op for op in graph.ops if op.kind == "copy"]
    assert len(copies) == EXPRESSIONS[expression]


HIDING = {
    "keep": "torch.zeros(6, 6, dtype=torch.bool)",
    "pads": "torch.zeros(2, 1, 1, 6, dtype=torch.bool)",
    "low": "torch.zeros(1, 8, 6, 6)",
}


@pytest.mark.parametrize("mask", ["keep", "pads", "low", "keep & (torch.arange(6) <= torch.arange(6)[:, None])"])
@pytest.mark.parametrize("operands", ["q, q, q", "q, k, v", "qb, qb, qb"])
def test_a_query_whose_keys_are_all_hidden_gets_zeros(
    mask: str, operands: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = f"{mask}.to(q.dtype if {operands[:2] == 'q,'} else qb.dtype)" if mask == "low" else mask
    expression = f"{SDPA}({operands}, attn_mask={low}, enable_gqa={'k' in operands})"
    for name, text in HIDING.items():
        monkeypatch.setitem(TENSORS, name, text)
    graph = captured(expression)
    given = values()
    given["keep"][:] = torch.rand(6, 6, generator=torch.Generator().manual_seed(3)) < 0.7
    given["keep"][3] = False
    given["pads"][0], given["pads"][1] = True, False
    given["low"][:, :, 2] = -torch.inf
    wanted = eval(expression, {**given, "torch": torch, "F": F})
    assert bool((wanted == 0).all(-1).any())
    assert not wanted.isnan().any()
    for dtype in (torch.float64, None):
        (found,) = evaluate(graph, [given[label] for label in graph.labels], dtype=dtype)
        rough = 3e-2 if wanted.dtype == torch.bfloat16 else 1e-5
        torch.testing.assert_close(found.double(), wanted.double(), rtol=rough, atol=rough)
    (chain,) = (c for i in range(len(graph.ops)) if (c := attention_chain(graph, i)) is not None)
    assert chain.safe


def test_a_softmax_that_is_written_out_stays_nan() -> None:
    graph = captured("F.softmax(torch.where(bias > -9, -torch.inf, bias), -1)")
    (found,) = evaluate(graph, [values()[label] for label in graph.labels])
    assert bool(found.isnan().all())


@pytest.mark.parametrize(
    "mask",
    [
        "torch.arange(6)[None] <= torch.arange(6)[:, None]",
        "(torch.arange(6) <= torch.arange(6)[:, None]) & (torch.arange(6)[:, None] - torch.arange(6) < 3)",
    ],
)
def test_a_mask_of_positions_that_shows_each_query_a_key_is_a_plain_softmax(mask: str) -> None:
    graph = captured(f"{SDPA}(q, q, q, attn_mask={mask})")
    assert "eq" not in {op.kind for op in graph.ops}


def test_turned_halves_are_a_roll_and_a_sign_under_the_transpose() -> None:
    graph = captured(HALVES.format("(x.exp().transpose(1, 2))"))
    (roll,) = (op for op in graph.ops if op.kind == "roll")
    assert roll.attributes == (("axis", 3), ("shift", 8))
    assert roll.out.shape == (2, 6, 8, 16)
    assert [op.kind for op in graph.ops if op.kind != "input"] == [
        *("exp", "roll", "neg", "iota", "constant", "lt", "where", "view"),
    ]


@pytest.mark.parametrize(
    ("expression", "kinds"),
    [
        ("torch.cat([x[..., 8:], x[..., :8]], -1)", {"roll"}),
        ("torch.cat([-x[..., 12:], -x[..., :12]], -1)", {"roll", "neg"}),
        ("torch.cat([x[..., 8:], -x[..., :8]], -1)", {"roll", "neg", "iota", "lt", "where", "constant"}),
        ("torch.cat([-x[..., :8], x[..., 8:]], -1)", {"neg", "view", "cat"}),
        ("torch.cat([x[..., 9:], x[..., :8]], -1)", {"view", "cat"}),
        ("torch.cat([x[..., 8:], x.exp()[..., :8]], -1)", {"exp", "view", "cat"}),
        ("torch.cat([x[:, 3:], x[:, :3]], 1)", {"roll"}),
        ("torch.cat([x[:, 3:, 4:], x[:, :3, 4:]], 1)", {"view", "roll"}),
    ],
)
def test_only_the_two_parts_of_one_tensor_are_a_roll(expression: str, kinds: set[str]) -> None:
    assert {op.kind for op in captured(expression).ops} - {"input"} == kinds


def test_repeated_heads_and_shared_heads_are_one_graph() -> None:
    repeated = captured(f"{SDPA}(q, k{REPEATED.format(16)}, v{REPEATED.format(24)}, is_causal=True)")
    shared = captured(f"{SDPA}(q, k, v, is_causal=True, enable_gqa=True)")
    assert canonical_form("attention", repeated) == canonical_form("attention", shared)


def test_a_causal_mask_is_a_comparison_of_positions() -> None:
    graph = captured(f"{SDPA}(q, q, q, is_causal=True)")
    (mask,) = (op for op in graph.ops if op.kind == "le")
    column, row = (graph.ops[i] for i in mask.inputs)
    assert (column.kind, column.attribute("axis"), row.kind, row.attribute("axis")) == ("iota", 3, "iota", 2)


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        (f"{SDPA}(q, q, q, dropout_p=0.5)", "dropout"),
        (f"{SDPA}(q, q[:1], q[:1])", "batches must be equal"),
        ("x[:, ids[0]]", "aten.index"),
        ("torch.index_select(x, 1, ids[0])", "another axis than the first"),
        ("torch.roll(x, 2)", "name its dims"),
        ("torch.scatter(x, 0, ids[None, None], x)", "aten.scatter"),
    ],
)
def test_what_is_not_covered_names_the_op(expression: str, sentence: str) -> None:
    with pytest.raises(UnsupportedOpError, match=sentence):
        captured(expression)
