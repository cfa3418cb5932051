"""Contraction bodies with several matmuls of one left operand."""

from __future__ import annotations

from engine.ir import Graph, GraphBuilder, TensorSpec


def gate_up(m: int, n: int, k: int, dtype: str, *, turned: bool = True, lead: tuple[int, ...] = ()) -> Graph:
    """silu(x @ gate) * (x @ up), the weights stored as torch's linear has them when `turned`."""
    b = GraphBuilder()
    x = b.input(TensorSpec.contiguous((*lead, m, k), dtype))
    gate, up = (_weight(b, n, k, dtype, turned) for _ in range(2))
    return b.build(b.add("mul", b.add("silu", b.add("matmul", x, gate)), b.add("matmul", x, up)))


def _weight(b: GraphBuilder, n: int, k: int, dtype: str, turned: bool) -> int:
    if not turned:
        return b.input(TensorSpec.contiguous((k, n), dtype))
    return b.view(b.input(TensorSpec.contiguous((n, k), dtype)), (k, n), (1, k))


def three_results(m: int, n: int, k: int, dtype: str) -> Graph:
    """Three products of one operand, one with a bias; each is a result."""
    b = GraphBuilder()
    x = b.input(TensorSpec.contiguous((m, k), dtype))
    products = [b.add("matmul", x, _weight(b, n, k, dtype, turned=i != 1)) for i in range(3)]
    biased = b.add("add", products[0], b.input(TensorSpec.contiguous((n,), dtype)))
    return b.build(biased, *products[1:])


def prologues_of_siblings() -> Graph:
    """A scaled left operand, and one right operand that is computed."""
    b = GraphBuilder()
    x = b.add("mul", b.input(TensorSpec.contiguous((20, 24), "bfloat16")), b.constant(0.5))
    first = b.input(TensorSpec.contiguous((24, 18), "bfloat16"))
    second = b.add("exp", b.input(TensorSpec.contiguous((24, 18), "bfloat16")))
    return b.build(b.add("sub", b.add("matmul", x, first), b.add("matmul", x, second)))


def batched() -> Graph:
    b = GraphBuilder()
    x = b.input(TensorSpec.contiguous((3, 20, 32), "float16"))
    rights = [b.input(TensorSpec.contiguous((3, 32, 40), "float16")) for _ in range(2)]
    return b.build(b.add("maximum", *(b.add("matmul", x, right) for right in rights)))


SIBLINGS = {
    "gate_up": lambda: gate_up(40, 72, 64, "bfloat16"),
    "gate_up_ragged": lambda: gate_up(33, 50, 37, "float32", turned=False),
    "gate_up_of_tokens": lambda: gate_up(9, 48, 32, "float16", lead=(2,)),
    "gate_up_of_one": lambda: gate_up(1, 64, 40, "float16"),
    "three_results": lambda: three_results(24, 32, 64, "bfloat16"),
    "three_results_fp32": lambda: three_results(20, 16, 40, "float32"),
    "prologues_of_siblings": prologues_of_siblings,
    "batched_siblings": batched,
}
