from __future__ import annotations

import pytest

from engine.grouping import grouping_space
from engine.ir import GraphError, cut_slice
from tests.ir.graphs import linear_gelu


def test_a_slice_is_the_kernel_with_a_stand_in_for_each_input() -> None:
    graph = linear_gelu()
    space = grouping_space(graph)
    fork = space.fork(())
    assert fork is not None
    plan = space.grouping((fork.options[0],))
    kernel = plan.calls[0].kernel
    cut = cut_slice(plan, kernel.key)
    assert cut.kernel == kernel
    assert cut.inputs == tuple(view.spec for view in plan.calls[0].arguments)
    with pytest.raises(GraphError, match="no kernel"):
        cut_slice(plan, "0" * 24)
