"""What passes as eager's result, what a captured function is watched for, and where a command runs."""

from __future__ import annotations

import pytest
import torch

from engine.deploy.execution import check_against
from engine.deploy.place import has_driver, this_place
from engine.ir import GraphBuilder, TensorSpec
from engine.ir.graph import Graph


def doubled() -> Graph:
    build = GraphBuilder()
    x = build.input(TensorSpec.contiguous((4, 4), "float32"))
    return build.build(build.add("mul", x, build.constant(2.0, "float32")))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda y: y, ""),
        (lambda y: y + 1e-7, ""),
        (lambda y: y * 1.01, "relative error"),
        (lambda y: y[:2], "other shapes"),
        (lambda y: y / 0.0, "NaN or infinity"),
    ],
)
def test_an_output_is_as_exact_as_eagers_or_it_is_said(change, sentence: str) -> None:
    x = torch.randn(4, 4)
    said = check_against(doubled(), [x], [change(x * 2)], [x * 2])
    assert sentence in said
    assert bool(said) is bool(sentence)


def test_without_a_driver_there_is_no_place() -> None:
    place = this_place()
    if not has_driver():
        assert place is None
    else:
        assert place is None or place.context.gpu
