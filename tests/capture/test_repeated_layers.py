"""A model of equal layers is divided as one layer is, asks what one asks, and costs a few layers to walk."""

from __future__ import annotations

from functools import cache

import pytest

from engine.capture import TargetOptions
from engine.grouping import GroupingSpace, grouping_space
from engine.grouping.space import RepeatedSpace
from engine.ir import Graph
from engine.ir.plan import Grouping
from engine.ir.verify_plan import verify_grouping
from engine.vocabulary import Option
from tests.capture.models import captured
from tests.grouping.test_space import assert_same_function

pytestmark = pytest.mark.filterwarnings("ignore")
FUSED = {"NORM_SCALE": "scaled", "ROW_STATS": "producer", "MERGE_SIBLINGS": "merged"}


@cache
def model(layers: int) -> Graph:
    options = TargetOptions(None, "bfloat16", 128, 1)
    return captured("qwen3", options, num_hidden_layers=layers, hidden_size=128)


def plan_of(space: GroupingSpace, wanted: dict[str, str]) -> Grouping:
    path: tuple[Option, ...] = ()
    while (fork := space.fork(path)) is not None:
        answer = wanted.get(fork.name.rsplit("_", 1)[0])
        path = (*path, next((o for o in fork.options if o.knobs[0][1] == answer), fork.options[0]))
    return space.grouping(path)


def test_each_of_four_layers_is_five_kernels() -> None:
    """Projections, attention, its output with partial sums, gate and up, and down with partial sums; before them the
    first norm, behind them the last, whose kernel can't end a matmul."""
    plan = plan_of(grouping_space(model(4)), FUSED)
    verify_grouping(plan)
    assert len(plan.calls) == 4 * 5 + 2
    labels = [call.kernel.label for call in plan.calls]
    assert sum(label.startswith("3 matmuls") for label in labels) == 4
    assert labels.count("attention") == 4
    assert sum("sum" in label for label in labels) == 3 + 4 + 4 + 3
    assert len(plan.kernel_counts()) == 9


def test_kernels_apart_are_apart_in_each_layer() -> None:
    first, second = (plan_of(grouping_space(model(layers)), {}) for layers in (3, 4))
    assert len(second.calls) - len(first.calls) == 8
    assert len(second.kernel_counts()) == len(first.kernel_counts())


@pytest.mark.parametrize("wanted", [{}, FUSED, {"FUSE_GROUPS": "apart", "SIDE_BY_SIDE": "apart"}])
def test_more_layers_are_more_of_the_same_kernels(wanted: dict[str, str]) -> None:
    four, nine = grouping_space(model(4)), grouping_space(model(9))
    assert isinstance(nine, RepeatedSpace)
    assert not isinstance(four, RepeatedSpace)
    small, large = plan_of(four, wanted), plan_of(nine, wanted)
    verify_grouping(large)
    assert large.decisions == small.decisions
    assert large.kernel_counts().keys() == small.kernel_counts().keys()
    more = {key: count - small.kernel_counts()[key][1] for key, (_, count) in large.kernel_counts().items()}
    assert all(change % 5 == 0 for change in more.values())
    assert nine.kernel_counts(large.decisions) == large.kernel_counts()


def test_a_short_walk_asks_what_the_whole_asks() -> None:
    nine = grouping_space(model(9))
    whole = GroupingSpace(model(9))
    for wanted in ({}, FUSED, {"FUSE_ATTENTION": "apart"}):
        plan = plan_of(nine, wanted)
        assert plan == plan_of(whole, wanted)


def test_a_projection_stores_its_rows_scaled_whether_attention_computes_its_queries_or_not() -> None:
    """In half the bytes, and the kernel that sums the rows again is the projection's, not attention's."""
    for answer in ("fused", "apart"):
        plan = plan_of(grouping_space(model(2)), {**FUSED, "FUSE_ATTENTION_PROLOGUE": answer})
        (attention, _), *others = (item for item in plan.kernel_counts().values() if item[0].family == "attention")
        assert not others
        assert {spec.dtype for spec in attention.body.input_specs() if spec.numel > 128 * 16} == {"bfloat16"}


def test_layers_whose_rows_are_scaled_and_summed_elsewhere_compute_the_model() -> None:
    graph = model(2)
    assert_same_function(graph, plan_of(grouping_space(graph), FUSED))
