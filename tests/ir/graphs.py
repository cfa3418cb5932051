"""Small graphs that several tests look at, and random ones."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.ir import Graph, GraphBuilder, TensorSpec

contiguous = TensorSpec.contiguous
UNARY = ("neg", "exp", "relu", "tanh", "abs", "sigmoid", "silu", "gelu")
BINARY = ("add", "sub", "mul", "maximum", "minimum")
SHAPES = ((4, 6), (1, 6), (4, 1), (6,), (6, 4), (4, 4), (2, 4, 6))


def linear_gelu(rows: int = 8, columns: int = 32, depth: int = 16, dtype: str = "bfloat16") -> Graph:
    b = GraphBuilder()
    x, w = b.input(contiguous((rows, depth), dtype), "x"), b.input(TensorSpec((depth, columns), dtype, (1, depth)), "w")
    bias = b.input(contiguous((columns,), dtype), "bias")
    return b.build(b.add("gelu", b.add("add", b.add("matmul", x, w), bias)))


def add_softmax(b: GraphBuilder, x: int) -> int:
    axes = (len(b.spec(x).shape) - 1,)
    powers = b.add("exp", b.add("sub", x, b.add("amax", x, axes=axes, dtype="float32"), dtype="float32"))
    return b.add("div", powers, b.add("sum", powers, axes=axes), dtype=b.spec(x).dtype)


def softmax(rows: int = 8, columns: int = 16, dtype: str = "bfloat16") -> Graph:
    b = GraphBuilder()
    return b.build(add_softmax(b, b.input(contiguous((rows, columns), dtype), "x")))


def add_rms_norm(b: GraphBuilder, x: int, weight: int) -> int:
    """The way a model writes it out: float32 inside, back to the input's dtype before the weight."""
    wide = b.add("cast", x, dtype="float32")
    mean = b.add("mean", b.add("mul", wide, wide), axes=(len(b.spec(x).shape) - 1,))
    scale = b.add("rsqrt", b.add("add", mean, b.constant(1e-6)))
    narrow = b.add("cast", b.add("mul", wide, scale), dtype=b.spec(x).dtype)
    return b.add("mul", narrow, weight)


def feed_forward(layers: int = 1) -> Graph:
    """Residual, norm, gated feed-forward and residual, as a transformer layer has them."""
    b = GraphBuilder()
    h = b.input(contiguous((8, 16), "bfloat16"), "x")
    for _ in range(layers):
        weight, out = b.input(contiguous((16,), "bfloat16")), b.input(contiguous((16, 16), "bfloat16"))
        h = b.add("add", b.add("matmul", h, out), h)
        normed = add_rms_norm(b, h, weight)
        gate, up = (b.input(contiguous((16, 32), "bfloat16")) for _ in range(2))
        down = b.input(contiguous((32, 16), "bfloat16"))
        inner = b.add("mul", b.add("silu", b.add("matmul", normed, gate)), b.add("matmul", normed, up))
        h = b.add("add", b.add("matmul", inner, down), h)
    return b.build(h)


@st.composite
def random_graphs(draw: st.DrawFn, most_ops: int = 14) -> Graph:
    """Graphs of every op class over a few shapes, with shared values, views and several outputs."""
    b = GraphBuilder()
    values = [b.input(contiguous(draw(st.sampled_from(SHAPES)), "float32")) for _ in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(1, most_ops))):
        values.append(_random_op(draw, b, values))
    outputs = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True))
    return b.build(*outputs, values[-1])


def _random_op(draw: st.DrawFn, b: GraphBuilder, values: list[int]) -> int:
    x = draw(st.sampled_from(values))
    shape = b.spec(x).shape
    what = draw(st.sampled_from(("unary", "binary", "binary", "reduce", "normalize", "matmul", "view", "constant")))
    if what == "binary":
        fits = [v for v in values if _broadcasts(b.spec(v).shape, shape)]
        return b.add(draw(st.sampled_from(BINARY)), x, draw(st.sampled_from(fits)))
    if what == "constant":
        return b.add("mul", x, b.constant(draw(st.sampled_from((0.5, 2.0)))))
    if what == "reduce" and shape:
        return b.add(draw(st.sampled_from(("sum", "mean", "amax", "amin"))), x, axes=(len(shape) - 1,))
    if what == "normalize" and shape:
        return add_softmax(b, x)
    if what == "matmul":
        fits = [v for v in values if len(b.spec(v).shape) == 2 and len(shape) >= 2 and b.spec(v).shape[0] == shape[-1]]
        if fits:
            return b.add("tanh", b.add("matmul", x, draw(st.sampled_from(fits))))
    if what == "view" and len(shape) == 2 and b.op(x).kind != "view":
        spec = b.spec(x)
        return b.view(x, spec.shape[::-1], spec.strides[::-1])
    return b.add(draw(st.sampled_from(UNARY)), x)


def _broadcasts(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(left), reversed(right), strict=False))
