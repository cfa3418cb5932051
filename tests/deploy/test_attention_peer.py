"""A kernel's attention as torch's call: which bodies have one, that its result is right, that nothing else runs."""

from __future__ import annotations

import pytest
import torch

from engine.deploy.attention_peer import attention_body, body_of_peers
from engine.deploy.peers import OP_BY_OP, TORCH_ATTENTION
from engine.ir import Graph, GraphBuilder, Kernel, TensorSpec
from engine.measure import less_exact_than_eager
from engine.runtime import Case, compare, prepare_case
from tests.codegen.attention_bodies import ATTENTION, add_softmax, attention, drawn

NO_FORM = {"hidden_finite", "slices_of_keys", "slices_of_keys_fp32"} | {
    name for name in ATTENTION if name.startswith("soft_capped")
}
"""torch takes masks that hide, caps no scores, and gives nothing but the values."""
ANOTHER_RESULT = {"rows_without_keys", "rows_without_keys_finite", "long_causal_rows_without_keys"}
"""Where torch has zeros for a query without keys, and the body has what a softmax has."""


def case_of(body: Graph) -> Case:
    return prepare_case(Kernel("attention", body), 0, torch.device("cpu"))


def right(body: Graph, case: Case) -> bool | None:
    """Whether torch's call gives what the body does; None where it can't say the body."""
    function = attention_body(body, case.inputs)
    if function is None:
        return None
    found = compare(function(*case.inputs), case.references)
    dtypes = [str(output.dtype) for output in case.outputs]
    return less_exact_than_eager(found, case.eager, dtypes, case.rounding) is None


def calls(body: Graph) -> list[str]:
    """The names of what is called, in order."""
    function = attention_body(body, case_of(body).inputs)
    assert isinstance(function, torch.fx.GraphModule)
    return [str(node.target) for node in function.graph.nodes if node.op == "call_function"]


@pytest.mark.parametrize("name", sorted(ATTENTION))
def test_the_result_is_the_bodys(name: str) -> None:
    body = ATTENTION[name]()
    expected = None if name in NO_FORM else name not in ANOTHER_RESULT
    assert right(body, case_of(body)) is expected


@pytest.mark.parametrize("seed", range(12))
def test_the_result_is_right_for_shapes_that_nobody_chose(seed: int) -> None:
    body = drawn(seed)
    case = case_of(body)
    if not any(bool(reference.isnan().any()) for reference in case.references):
        assert right(body, case) is not False


@pytest.mark.parametrize("name", ["plain_bf16", "causal_fp16", "grouped", "heads_first", "one_query_causal"])
def test_no_scores_are_written_and_nothing_is_masked_by_hand(name: str) -> None:
    called = calls(ATTENTION[name]())
    assert sum("attention" in one for one in called) == 1
    assert not any(word in one for one in called for word in ("aten.mm", "bmm", "aten.exp.", "where"))


def test_a_window_is_a_mask_that_is_made_once() -> None:
    called = calls(ATTENTION["window"]())
    assert sum("attention" in one for one in called) == 1
    assert not any(word in one for one in called for word in ("arange", "aten.le.", "aten.lt.", "logical", "where"))


def test_what_leads_to_the_queries_and_follows_the_values_stays() -> None:
    b = GraphBuilder()
    q, k, v, x = (b.input(TensorSpec.contiguous((2, 3, 24, 16), "float32")) for _ in range(4))
    scaled = b.add("mul", q, b.constant(0.3))
    scores = b.add("matmul", scaled, b.view(k, (2, 3, 16, 24), (1152, 384, 1, 16)))
    values = b.add("matmul", add_softmax(b, scores, "float32"), v)
    body = b.build(b.add("add", values, x), b.add("relu", values))
    assert right(body, case_of(body)) is True
    assert sum("attention" in one for one in calls(body)) == 1


def test_bodies_without_an_attention_and_capped_scores_have_no_call() -> None:
    b = GraphBuilder()
    left, right_one = (b.input(TensorSpec.contiguous((16, 16), "float32")) for _ in range(2))
    product = b.build(b.add("matmul", left, right_one))
    assert right(product, case_of(product)) is None
    capped = b.build(b.add("matmul", add_softmax(b, b.add("tanh", b.add("matmul", left, left)), "float32"), right_one))
    assert right(capped, case_of(capped)) is None


def test_one_that_gives_the_weights_as_well_has_no_call() -> None:
    b = GraphBuilder()
    q, k, v = (b.input(TensorSpec.contiguous((2, 16, 16), "float32")) for _ in range(3))
    weights = add_softmax(b, b.add("matmul", q, k), "float32")
    body = b.build(b.add("matmul", weights, v), weights)
    assert right(body, case_of(body)) is None


def test_torch_runs_without_a_copy_where_heads_are_joined() -> None:
    called = calls(attention(4, 32, 32, 16, "bfloat16", causal=True, batch=2))
    assert not any("clone" in one or "copy" in one for one in called)


@pytest.mark.parametrize(
    ("name", "way"),
    [("grouped", TORCH_ATTENTION), ("safe_hidden", TORCH_ATTENTION), ("rows_without_keys", OP_BY_OP)],
)
def test_peers_get_torchs_attention_where_it_is_right_and_else_the_ops(name: str, way: str) -> None:
    body = ATTENTION[name]()
    case = case_of(body)
    function, written = body_of_peers(body, case)
    assert written == way
    found = compare(function(*case.inputs), case.references)
    dtypes = [str(output.dtype) for output in case.outputs]
    assert less_exact_than_eager(found, case.eager, dtypes, case.rounding) is None
