"""What passes as eager's result, what a captured function is watched for, and where a command runs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.deploy.execution import check_against
from engine.deploy.place import has_driver, this_place
from engine.deploy.watching import Watch
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


def test_a_module_is_watched_for_weights_that_are_exchanged_or_moved() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    watch = Watch.of(module, [])
    assert not watch.changed()
    with torch.no_grad():
        module[0].weight.mul_(2.0)
    assert not watch.changed()
    module[0].bias = nn.Parameter(torch.zeros(4))
    assert watch.changed()
    watch = Watch.of(module, [])
    module[1].running_mean = torch.ones(4)
    assert watch.changed()
    watch = Watch.of(module, [])
    module.double()
    assert watch.changed()


def test_a_function_is_watched_for_what_it_was_captured_with() -> None:
    held = torch.randn(4)
    watch = Watch.of(torch.sin, [held])
    assert not watch.changed()
    held.set_(torch.randn(4))
    assert watch.changed()


def test_without_a_driver_there_is_no_place() -> None:
    place = this_place()
    if not has_driver():
        assert place is None
    else:
        assert place is None or place.context.gpu
