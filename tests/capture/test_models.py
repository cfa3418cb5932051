"""Every kind of model that ships, small: its graph computes what torch computes, as a whole and layer by layer."""

from __future__ import annotations

import pytest
import torch

from engine.capture import TargetOptions
from engine.capture.errors import TargetOptionError, UnsupportedOpError
from engine.capture.models import attend
from engine.grouping import grouping_space
from engine.ir import verify
from engine.ir.graph import Graph
from engine.runtime.reference import evaluate
from tests.capture.models import SMALL, captured, hold

pytestmark = pytest.mark.filterwarnings("ignore")


def error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Relative norm."""
    assert found.shape == wanted.shape
    return float((found.double() - wanted.double()).norm() / wanted.double().norm())


def kinds(graph: Graph) -> set[str]:
    return {op.attribute("op") if op.kind == "extern" else op.kind for op in graph.ops}


@pytest.mark.parametrize(("kind", "layer"), [*((kind, layer) for kind in SMALL for layer in (0, None)), ("qwen3", 1)])
def test_a_model_computes_what_torch_computes(kind: str, layer: int | None) -> None:
    held = hold(kind, TargetOptions(layer, "float32", 16, 2))
    assert verify(held.graph)
    for dtype in (torch.float64, None):
        for found, wanted in zip(evaluate(held.graph, held.tensors, dtype=dtype), held.wanted, strict=True):
            assert error(found, wanted) < 1e-5


@pytest.mark.parametrize("kind", SMALL)
def test_bfloat16_is_as_near_as_torch_is(kind: str) -> None:
    held = hold(kind, TargetOptions(0, "bfloat16", 16, 1))
    (exact,), (eager,) = evaluate(held.graph, held.tensors), evaluate(held.graph, held.tensors, dtype=None)
    own = error(held.wanted[0], exact)
    assert own < 2e-2
    assert error(eager, exact) < 1.5 * own
    assert held.graph.output_specs()[0].dtype == "bfloat16"


@pytest.mark.parametrize("kind", ["qwen3", "llama"])
@pytest.mark.parametrize("label", ["position_embeddings.0", "position_embeddings.1"])
def test_rotary_cosines_and_sines_are_inputs_that_matter(kind: str, label: str) -> None:
    held = hold(kind, TargetOptions(0, "float32", 16, 1))
    other = list(held.tensors)
    other[held.place(label)] = torch.randn_like(other[held.place(label)])
    assert error(evaluate(held.graph, other)[0], held.wanted[0]) > 1e-2


def test_a_whole_model_computes_its_rotary_embedding_from_frequencies() -> None:
    held = hold("qwen3", TargetOptions(None, "float32", 16, 1))
    place = held.place("rotary_emb.inv_freq")
    other = list(held.tensors)
    other[place] = other[place] * 1.5
    assert error(evaluate(held.graph, other)[0], held.wanted[0]) > 1e-2
    assert {"gather", "iota", "roll", "cos", "sin"} <= kinds(held.graph)


@pytest.mark.parametrize(("kind", "called"), [("vit", 1), ("whisper", 2), ("qwen3", 0), ("bert", 0), ("gpt2", 0)])
def test_only_convolutions_are_called_as_they_are(kind: str, called: int) -> None:
    graph = captured(kind, TargetOptions(None, "bfloat16", 16, 1))
    names = [op.attribute("op") for op in graph.ops if op.kind == "extern"]
    assert names == ["aten.convolution.default"] * called


def test_a_layer_reads_nothing_that_it_does_not_need() -> None:
    graph = captured("qwen3", TargetOptions(1, "bfloat16", 16, 1))
    assert graph.labels[-3:] == ("hidden_states", "position_embeddings.0", "position_embeddings.1")
    assert "self_attn.q_proj.weight" in graph.labels
    assert all(graph.users(i) for i in graph.inputs)


def test_queries_that_share_keys_read_them_with_stride_0() -> None:
    graph = captured("qwen3", TargetOptions(0, "bfloat16", 16, 1))
    shared = [op for op in graph.ops if op.kind == "view" and len(op.out.shape) == 5 and op.out.strides[2] == 0]
    assert [op.out.shape for op in shared] == [(1, 2, 2, 16, 16)] * 2
    scores, values = (op for op in graph.ops if op.kind == "matmul" and len(op.out.shape) == 5)
    assert (scores.out.dtype, values.out.dtype) == ("float32", "bfloat16")


def test_one_token_needs_no_mask() -> None:
    held = hold("llama", TargetOptions(0, "float32", 1, 1))
    assert error(evaluate(held.graph, held.tensors)[0], held.wanted[0]) < 1e-5
    assert "le" not in kinds(held.graph)


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        ("bert", TargetOptions(2, seq_len=16), "the layers 0 to 1"),
        ("bert", TargetOptions(0, seq_len=33), "the model has 32 positions"),
    ],
)
def test_what_a_model_does_not_have_is_one_sentence(kind: str, options: TargetOptions, sentence: str) -> None:
    with pytest.raises(TargetOptionError, match=sentence):
        captured(kind, options)


def test_attention_that_is_not_covered_is_named() -> None:
    q = torch.randn(1, 2, 4, 8)
    with pytest.raises(UnsupportedOpError, match="softcap"):
        attend(torch.nn.Identity(), q, q, q, None, softcap=30.0)
    with pytest.raises(UnsupportedOpError, match="without a causal mask"):
        attend(torch.nn.Identity(), q, q, q, None, is_causal=False, sliding_window=2)


def test_parameters_and_buffers_are_weights_and_what_is_fed_is_not() -> None:
    graph = captured("qwen3", TargetOptions(None, "bfloat16", 16, 1))
    fed = [label for place, label in enumerate(graph.labels) if place not in graph.weights]
    assert fed == ["input_ids"]
    layer = captured("qwen3", TargetOptions(0, "bfloat16", 16, 1))
    fed = [label for place, label in enumerate(layer.labels) if place not in layer.weights]
    assert fed == ["hidden_states", "position_embeddings.0", "position_embeddings.1"]


def test_a_layer_is_asked_whether_the_scale_of_each_norm_moves() -> None:
    space = grouping_space(captured("qwen3", TargetOptions(0, "bfloat16", 16, 1)))
    first = space.fork(())
    second = space.fork(first.options[1:2]) if first is not None else None
    assert [fork.name for fork in (first, second) if fork is not None] == ["NORM_SCALE_0", "NORM_SCALE_1"]
