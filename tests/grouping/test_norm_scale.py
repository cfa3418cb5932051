"""Where the scale of a norm may move behind the matmuls that read it, and what is left of the norm then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.grouping import grouping_space
from engine.grouping.norm_scale import NormScale
from engine.ir import Graph, GraphBuilder
from engine.ir.plan import Grouping
from tests.grouping.rewritable import contiguous, linear, norm_and_linears
from tests.ir.graphs import add_rms_norm


def offered(graph: Graph) -> int:
    return len(NormScale().sites(graph))


@pytest.mark.parametrize(
    "graph",
    [
        norm_and_linears(),
        norm_and_linears(scaled=False, fixed=False),
        norm_and_linears(batch=3),
        norm_and_linears(dtype="float32"),
    ],
)
def test_a_norm_that_only_matmuls_read_is_offered(graph: Graph) -> None:
    assert offered(graph) == 1


def of_norm(use: Callable[[GraphBuilder, int, int], int], dtype: str = "bfloat16") -> Graph:
    """A graph that ends in `use` (builder, rows, normed rows)."""
    b = GraphBuilder()
    x = b.input(contiguous((4, 16), dtype))
    return b.build(use(b, x, add_rms_norm(b, x, b.input(contiguous((16,), dtype), weight=True))))


DECLINED: dict[str, Graph] = {
    "the normed rows are returned": norm_and_linears(shown=True),
    "the norm's weight may change": norm_and_linears(fixed=False),
    "somebody else reads the rows": of_norm(lambda b, x, n: b.add("add", linear(b, n, 16), n)),
    "the matrix may change": of_norm(lambda b, x, n: linear(b, n, 8, weight=False)),
    "the rows are the right operand": of_norm(lambda b, x, n: b.add("matmul", b.view(x, (16, 4), (1, 16)), n)),
    "the rows are multiplied with themselves": of_norm(lambda b, x, n: b.add("matmul", n, b.view(n, (16, 4), (1, 16)))),
    "the rows are turned": of_norm(lambda b, x, n: linear(b, b.view(n, (16, 4), (1, 16)), 8)),
    "half of a row is read": of_norm(lambda b, x, n: linear(b, b.view(n, (4, 8), (16, 1)), 8)),
    "nothing multiplies": of_norm(lambda b, x, n: b.add("relu", n)),
}


@pytest.mark.parametrize("why", DECLINED)
def test_another_norm_is_not_asked(why: str) -> None:
    assert offered(DECLINED[why]) == 0


def scaled(graph: Graph) -> Grouping:
    """The grouping with the first answers to everything but the norm."""
    space = grouping_space(graph)
    path = ()
    while (fork := space.fork(path)) is not None:
        path = (*path, fork.options[1 if fork.name.startswith("NORM_SCALE") else 0])
    return space.grouping(path)


def test_scaled_leaves_a_number_a_row_and_prepares_the_weights() -> None:
    plan = scaled(norm_and_linears(rows=5, depth=48, columns=24))
    stat, gate, up = plan.calls
    assert [spec.shape for spec in stat.kernel.body.output_specs()] == [(1, 5, 48), (1, 5, 1)]
    assert [call.kernel.family for call in (gate, up)] == ["contraction", "contraction"]
    assert [spec.dtype for spec in gate.kernel.body.output_specs()] == ["bfloat16"]
    assert [spec.shape for step in plan.prepared for spec in step.body.output_specs()] == [(24, 48)] * 2
    assert all(buffer.shape != (5, 48) for buffer in plan.buffers[len(plan.input_specs()) :])


def test_a_weight_stored_by_rows_stays_so() -> None:
    b = GraphBuilder()
    x = b.input(contiguous((4, 16), "bfloat16"))
    normed = add_rms_norm(b, x, b.input(contiguous((16,), "bfloat16"), weight=True))
    graph = b.build(b.add("matmul", normed, b.input(contiguous((16, 8), "bfloat16"), weight=True)))
    (step,) = scaled(graph).prepared
    assert step.body.output_specs()[0].shape == (16, 8)
