"""TF32 is a setting of torch's: a block has its own, and a graph says whether it may."""

from __future__ import annotations

import pytest
import torch

from engine.ir.builder import GraphBuilder
from engine.ir.graph import Graph, TensorSpec
from engine.runtime.tf32 import allows_tf32, tf32


def matmul(allow_tf32: bool) -> Graph:
    build = GraphBuilder()
    x, w = (build.input(TensorSpec.contiguous((8, 8), "float32")) for _ in range(2))
    return build.build(build.add("matmul", x, w, allow_tf32=allow_tf32))


@pytest.mark.parametrize("allowed", [False, True])
def test_a_block_leaves_the_setting_as_it_was(allowed: bool) -> None:
    before = torch.backends.cuda.matmul.allow_tf32
    with tf32(allowed):
        assert torch.backends.cuda.matmul.allow_tf32 == allowed
    assert torch.backends.cuda.matmul.allow_tf32 == before


def test_one_graph_that_allows_it_is_enough() -> None:
    assert not allows_tf32([])
    assert not allows_tf32([matmul(False)])
    assert allows_tf32([matmul(False), matmul(True)])
