"""Attention of any shape, without torch.export in between: what the lowering builds is what torch computes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.capture.attention import attention
from engine.capture.convert import spec_of
from engine.capture.lowering import Lowering
from engine.runtime.reference import evaluate

LENGTHS = st.sampled_from((1, 2, 3, 7, 16, 17))
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MASKS = ("none", "causal", "truth", "added", "added by head")


@dataclass(frozen=True, slots=True)
class Case:
    """Heads are `group` queries a key; `turned` lays tokens before heads in memory, as a projection gives them."""

    batch: int
    shared: int
    group: int
    rows: int
    columns: int
    depth: int
    width: int
    mask: str
    dtype: torch.dtype
    turned: bool
    scale: float | None


CASES = st.builds(
    Case,
    batch=st.integers(1, 2),
    shared=st.sampled_from((1, 2, 3)),
    group=st.sampled_from((1, 2, 8)),
    rows=LENGTHS,
    columns=LENGTHS,
    depth=st.sampled_from((1, 8, 20)),
    width=st.sampled_from((1, 8, 12)),
    mask=st.sampled_from(MASKS),
    dtype=st.sampled_from(DTYPES),
    turned=st.booleans(),
    scale=st.sampled_from((None, 1.0, 0.3)),
)


def tokens(case: Case, heads: int, length: int, depth: int) -> torch.Tensor:
    if case.turned:
        return torch.randn(case.batch, length, heads, depth).to(case.dtype).transpose(1, 2)
    return torch.randn(case.batch, heads, length, depth).to(case.dtype)


def mask_of(case: Case, heads: int) -> torch.Tensor | None:
    if case.mask == "truth":
        mask = torch.rand(case.rows, case.columns) < 0.5
        mask[:, 0] = True
        return mask
    if case.mask.startswith("added"):
        return torch.randn(1, heads if case.mask == "added by head" else 1, case.rows, case.columns).to(case.dtype)
    return None


@settings(max_examples=150, deadline=None)
@given(CASES)
def test_attention_is_what_torch_computes(case: Case) -> None:
    torch.manual_seed(0)
    heads = case.shared * case.group
    query = tokens(case, heads, case.rows, case.depth)
    key, value = (
        tokens(case, case.shared, case.columns, case.depth),
        tokens(case, case.shared, case.columns, case.width),
    )
    mask = mask_of(case, heads)
    given_tensors = [t for t in (query, key, value, mask) if t is not None]

    low = Lowering()
    read = [low.input(spec_of(tensor), f"x{i}") for i, tensor in enumerate(given_tensors)]
    options = {"is_causal": case.mask == "causal", "scale": case.scale, "enable_gqa": case.group > 1}
    done = attention(low, str(case.dtype).removeprefix("torch."), *read, **options)  # type: ignore[arg-type]
    graph = low.builder.build(low.stored(done))

    wide = [t.double() if t.is_floating_point() else t for t in given_tensors]
    wanted = F.scaled_dot_product_attention(*wide, **options)  # type: ignore[arg-type]
    (exact,) = evaluate(graph, given_tensors)
    assert exact.shape == wanted.shape
    torch.testing.assert_close(exact, wanted, rtol=1e-9, atol=1e-9)
    (own,) = evaluate(graph, given_tensors, dtype=None)
    rough = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}[case.dtype]
    assert own.dtype == case.dtype
    torch.testing.assert_close(own.double(), wanted, rtol=rough, atol=rough)
    assert not [op for op in graph.ops if op.kind == "copy"]
