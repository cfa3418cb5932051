"""Which attention may be split along its keys, and into what."""

from __future__ import annotations

import pytest

from engine.grouping import grouping_space
from engine.grouping.rewriting import Chosen
from engine.grouping.split_keys import SplitKeys
from engine.ir import Graph, TensorSpec
from tests.codegen.attention_bodies import attention

ONE_TOKEN = attention(16, 1, 4096, 128, "bfloat16", group=2, tokens_first=False, joined=False)


@pytest.mark.parametrize(
    ("graph", "answers"),
    [
        (ONE_TOKEN, ("whole", "eighths", "sixteenths", "thirtyseconds")),
        (attention(32, 1, 4096, 128, "bfloat16", batch=2), ("whole", "quarters")),
        (attention(8, 16, 1024, 64, "float16"), ("whole", "eighths", "sixteenths")),
        (attention(8, 1, 1280, 64, "float16"), ()),
        (attention(16, 2, 4096, 64, "float16", group=8, tokens_first=False), ("whole", "thirtyseconds")),
        (attention(16, 2, 1024, 64, "float16", group=8), ("whole", "quarters", "eighths", "sixteenths")),
    ],
)
def test_few_queries_of_many_keys_are_offered(graph: Graph, answers: tuple[str, ...]) -> None:
    assert [site.answers for site in SplitKeys().sites(graph)] == ([answers] if answers else [])


@pytest.mark.parametrize(
    "graph",
    [
        attention(16, 1, 512, 128, "bfloat16"),
        attention(16, 17, 4096, 128, "bfloat16"),
        attention(16, 1, 4096, 128, "bfloat16", causal=True, offset=4095),
        attention(16, 1, 4096, 128, "bfloat16", hidden=(1, 1, 1, 4096)),
        attention(256, 1, 4096, 64, "bfloat16"),
        attention(16, 1, 4000, 128, "bfloat16"),
    ],
    ids=["few keys", "many queries", "causal", "hidden keys", "enough heads", "no whole steps"],
)
def test_another_attention_is_not_asked(graph: Graph) -> None:
    assert SplitKeys().sites(graph) == ()


def test_heads_that_share_keys_are_rows_of_one_product() -> None:
    (site,) = SplitKeys().sites(ONE_TOKEN)
    ops = SplitKeys().rewritten(ONE_TOKEN, (Chosen(site, "sixteenths"),)).ops
    scores, values = (op for op in ops if op.kind == "matmul")
    assert scores.out == TensorSpec.contiguous((1, 8, 16, 2, 256), "float32")
    assert values.out == TensorSpec.contiguous((1, 8, 16, 2, 128), "float32")
    query, key = (ops[i].out for i in scores.inputs)
    assert query.strides[2] == 0
    assert key.strides[2] == 256 * key.strides[-1]
    assert [op.out.dtype for op in ops if op.kind == "add"] == ["float32"] * 30
    assert ops[-1].out == TensorSpec.contiguous((1, 8, 2, 1, 128), "bfloat16")


def test_a_split_attention_is_two_kernels() -> None:
    space = grouping_space(ONE_TOKEN)
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[-1 if fork.name.startswith("SPLIT") else 0])
    assert [call.kernel.family for call in space.grouping(path).calls] == ["attention", "pointwise"]
