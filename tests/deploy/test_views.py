"""Equal kernels that read one buffer at several places each read their own, and calls of modules that do so deploy."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.ir import Graph, GraphBuilder, TensorSpec
from engine.ir.plan import Program
from tests.deploy.programs import printed_by
from tests.deploy.test_python_module import exported, run_alone

ROUNDING = 2e-6
HALF_ROUNDING = 1e-2
LIMIT_S = 280
pytestmark = pytest.mark.timeout(LIMIT_S + 20)


@pytest.mark.slow
def test_equal_kernels_read_each_their_own_place() -> None:
    found = printed_by("-W", "ignore", "-m", "tests.deploy.views", limit_s=LIMIT_S)
    assert {"chunk", "LSTM", "GRU", "MultiheadAttention"} < set(found)
    for name, errors in found.items():
        allowed = HALF_ROUNDING if "float16" in name else ROUNDING
        wrong = [error for error in errors if isinstance(error, str) or error > allowed]
        assert not wrong, f"{name}: {wrong}"


def gates(dtype: str) -> Graph:
    """Parts of one tensor by one kernel, an unaligned one too, and products of three parts with one weight."""
    b = GraphBuilder()
    x, w = b.input(TensorSpec((16, 200), dtype, (208, 1), 8), "x"), b.input(TensorSpec.contiguous((64, 32), dtype), "w")
    parts = [b.view(x, (16, 64), (208, 1), 8 + 64 * place) for place in range(3)]
    third = [b.view(x, (16, 5), (208, 1), 8 + place) for place in (0, 64, 65, 81)]
    return b.build(*(b.add("matmul", part, w) for part in parts), *(b.add("exp", part) for part in third))


@pytest.mark.parametrize(
    ("dtype", "last"),
    [
        ("float32", False),
        ("float16", True),
        pytest.param("float32", True, marks=pytest.mark.slow),
        pytest.param("float16", False, marks=pytest.mark.slow),
    ],
)
def test_an_exported_module_reads_each_part_where_it_is(dtype: str, last: bool, tmp_path: Path) -> None:
    text = exported(Program(gates(dtype), "gates"), tmp_path, last)
    check = f"""
    torch.manual_seed(0)
    for start in (8, 16, 9):
        x = torch.randn(16 * 208 + 32).to(torch.{dtype}).as_strided((16, 200), (208, 1), start)
        w = torch.randn(64, 32).to(torch.{dtype})
        found = tuned.run(x, w)
        wanted = [x[:, 64 * n : 64 * n + 64] @ w for n in range(3)] + [x[:, n : n + 5].exp() for n in (0, 64, 65, 81)]
        for one, other in zip(found, wanted, strict=True):
            assert float((one.double() - other.double()).norm() / other.double().norm()) < 1e-2, (start, one, other)
    print("right")
    """
    assert run_alone(text, check, tmp_path) == "right\n"
