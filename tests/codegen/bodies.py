"""Kernel bodies of every family, by name: the shapes, layouts and dtypes that generated text has to get right."""

from __future__ import annotations

from collections.abc import Callable

from engine.ir import Graph, GraphBuilder, Kernel, TensorSpec
from tests.codegen.attention_bodies import APART, ATTENTION
from tests.codegen.attention_prologue_bodies import PROLOGUES
from tests.codegen.epilogue_bodies import EPILOGUES
from tests.codegen.half_bodies import HALVES
from tests.codegen.moving_bodies import CONTRACTION_MOVES, POINTWISE_MOVES, ROWWISE_MOVES
from tests.codegen.sibling_bodies import SIBLINGS
from tests.codegen.vector_bodies import VECTORS

Body = Callable[[], Graph]


def tensor(builder: GraphBuilder, shape: tuple[int, ...], dtype: str = "float32") -> int:
    return builder.input(TensorSpec.contiguous(shape, dtype))


def matmul(
    m: int,
    n: int,
    k: int,
    dtype: str,
    *,
    batch: tuple[int, ...] = (),
    turn_left: bool = False,
    turn_right: bool = False,
    bias: bool = False,
    activation: str = "",
    allow_tf32: bool = False,
) -> Graph:
    """A matmul of contiguous inputs, either of which may be stored transposed, with an optional bias and activation."""
    builder = GraphBuilder()
    left = _maybe_turned(builder, batch, m, k, dtype, turn_left)
    right = _maybe_turned(builder, batch, k, n, dtype, turn_right)
    value = builder.add("matmul", left, right, allow_tf32=allow_tf32)
    if bias:
        value = builder.add("add", value, tensor(builder, (n,), dtype))
    if activation:
        value = builder.add(activation, value)
    return builder.build(value)


def _maybe_turned(
    builder: GraphBuilder, batch: tuple[int, ...], rows: int, columns: int, dtype: str, turned: bool
) -> int:
    if not turned:
        return tensor(builder, (*batch, rows, columns), dtype)
    stored = tensor(builder, (*batch, columns, rows), dtype)
    strides = builder.spec(stored).strides
    return builder.view(stored, (*batch, rows, columns), (*strides[:-2], strides[-1], strides[-2]))


def linear_of_tokens() -> Graph:
    """[2, 9, 40] rows taken from a wider tensor, so that batch and rows don't collapse, times [40, 24]."""
    builder = GraphBuilder()
    x = builder.input(TensorSpec((2, 9, 40), "float32", (1000, 40, 1), 8))
    return builder.build(builder.add("matmul", x, tensor(builder, (40, 24))))


def epilogue_of_everything() -> Graph:
    """Row scale, column bias, residual, scalar, truth mask, and the value before the activation as an output."""
    builder = GraphBuilder()
    y = builder.add("matmul", tensor(builder, (3, 20, 32), "float16"), tensor(builder, (32, 48), "float16"))
    scaled = builder.add("mul", y, tensor(builder, (20, 1), "float16"))
    shifted = builder.add("add", scaled, tensor(builder, (48,), "float16"))
    before = builder.add("add", shifted, tensor(builder, (3, 20, 48), "float16"))
    keep = builder.input(TensorSpec.contiguous((3, 1, 48), "bool"))
    scalar = builder.add("mul", before, tensor(builder, (), "float16"))
    after = builder.add("where", keep, builder.add("silu", scalar), builder.constant(-2.5))
    positive = builder.add("gt", before, builder.constant(0.0))
    return builder.build(before, after, positive)


def prologues() -> Graph:
    """A cast and column scale on the left; exp, which is not zero at the ragged edge, on the right."""
    builder = GraphBuilder()
    x = builder.add("cast", tensor(builder, (33, 21), "bfloat16"), dtype="float32")
    left = builder.add("mul", x, tensor(builder, (21,)))
    right = builder.add("exp", builder.add("log", builder.add("abs", tensor(builder, (21, 18)))))
    return builder.build(builder.add("matmul", left, right))


def dequantized_weight() -> Graph:
    builder = GraphBuilder()
    weight = builder.add("cast", builder.input(TensorSpec.contiguous((64, 48), "int8")), dtype="bfloat16")
    scaled = builder.add("mul", weight, tensor(builder, (1, 48), "bfloat16"))
    return builder.build(builder.add("matmul", tensor(builder, (40, 64), "bfloat16"), scaled))


def reshaped_result() -> Graph:
    """[24, 40] seen as [2, 12, 5, 8], added to, permuted by a view of the output."""
    builder = GraphBuilder()
    y = builder.add("matmul", tensor(builder, (24, 32)), tensor(builder, (32, 40)))
    heads = builder.view(y, (2, 12, 5, 8), (480, 40, 8, 1))
    moved = builder.add("add", heads, tensor(builder, (5, 1)))
    return builder.build(builder.view(moved, (2, 5, 12, 8), (480, 8, 40, 1)))


def split_depth() -> Graph:
    """The depth in four parts, as views of the same inputs."""
    builder = GraphBuilder()
    x, w = tensor(builder, (32, 128), "bfloat16"), tensor(builder, (128, 16), "bfloat16")
    left = builder.view(x, (4, 32, 32), (32, 128, 1))
    right = builder.view(w, (4, 32, 16), (512, 16, 1))
    return builder.build(builder.add("matmul", left, right, dtype="float32"))


def shared_right() -> Graph:
    """A batch of which the right operand is one matrix, expanded."""
    builder = GraphBuilder()
    left, right = tensor(builder, (3, 17, 24), "float16"), tensor(builder, (24, 32), "float16")
    return builder.build(builder.add("matmul", left, builder.view(right, (3, 24, 32), (0, 32, 1))))


def offset_operand() -> Graph:
    """An input that starts off its alignment."""
    builder = GraphBuilder()
    x = builder.input(TensorSpec((20, 24), "bfloat16", (40, 1), 3))
    return builder.build(builder.add("matmul", x, tensor(builder, (24, 16), "bfloat16")))


def same_input_twice() -> Graph:
    """x is multiplied as it is on one side, and computed on for the other."""
    builder = GraphBuilder()
    x = tensor(builder, (64, 64), "bfloat16")
    turned = builder.view(builder.add("exp", x), (64, 64), (1, 64))
    return builder.build(builder.add("matmul", x, turned))


CONTRACTIONS: dict[str, Body] = {
    "even_bf16": lambda: matmul(64, 64, 64, "bfloat16"),
    "even_fp16": lambda: matmul(32, 128, 64, "float16"),
    "ragged_fp32": lambda: matmul(70, 50, 37, "float32"),
    "ragged_bf16": lambda: matmul(72, 40, 88, "bfloat16", bias=True),
    "tf32_allowed": lambda: matmul(32, 32, 64, "float32", allow_tf32=True),
    "linear_gelu": lambda: matmul(48, 72, 56, "float16", turn_right=True, bias=True, activation="gelu"),
    "both_turned": lambda: matmul(40, 56, 24, "bfloat16", turn_left=True, turn_right=True),
    "bmm": lambda: matmul(20, 28, 36, "float32", batch=(3,)),
    "bmm_descriptors": lambda: matmul(24, 40, 64, "bfloat16", batch=(2, 2)),
    "bmm_turned": lambda: matmul(24, 40, 32, "float16", batch=(3,), turn_left=True, turn_right=True),
    "one_row": lambda: matmul(1, 100, 40, "bfloat16", bias=True),
    "one_column": lambda: matmul(50, 1, 40, "float32"),
    "one_deep": lambda: matmul(18, 20, 1, "float32"),
    "single": lambda: matmul(1, 1, 1, "float32"),
    "linear_of_tokens": linear_of_tokens,
    "epilogue_of_everything": epilogue_of_everything,
    "prologues": prologues,
    "dequantized_weight": dequantized_weight,
    "reshaped_result": reshaped_result,
    "split_depth": split_depth,
    "shared_right": shared_right,
    "offset_operand": offset_operand,
    "same_input_twice": same_input_twice,
}


def softmax(rows: tuple[int, ...], columns: int, dtype: str, *, log: bool = False) -> Graph:
    builder = GraphBuilder()
    x = builder.add("cast", tensor(builder, (*rows, columns), dtype), dtype="float32")
    axis = (len(rows),)
    shifted = builder.add("sub", x, builder.add("amax", x, axes=axis))
    total = builder.add("sum", builder.add("exp", shifted), axes=axis)
    if log:
        y = builder.add("sub", shifted, builder.add("log", total))
    else:
        y = builder.add("div", builder.add("exp", shifted), total)
    return builder.build(builder.add("cast", y, dtype=dtype))


def rms_norm(rows: int, columns: int, dtype: str) -> Graph:
    builder = GraphBuilder()
    x = builder.add("cast", tensor(builder, (rows, columns), dtype), dtype="float32")
    mean = builder.add("mean", builder.add("mul", x, x), axes=(1,))
    scale = builder.add("rsqrt", builder.add("add", mean, builder.constant(1e-6)))
    y = builder.add("cast", builder.add("mul", x, scale), dtype=dtype)
    return builder.build(builder.add("mul", y, tensor(builder, (columns,), dtype)))


def layer_norm(rows: int, columns: int, dtype: str) -> Graph:
    """With its mean and reciprocal deviation as outputs."""
    builder = GraphBuilder()
    x = tensor(builder, (rows, columns), dtype)
    mean = builder.add("mean", x, axes=(1,), dtype="float32")
    centred = builder.add("sub", x, mean)
    variance = builder.add("mean", builder.add("mul", centred, centred), axes=(1,))
    scale = builder.add("rsqrt", builder.add("add", variance, builder.constant(1e-5)))
    normal = builder.add("mul", centred, scale)
    weight, bias = tensor(builder, (columns,), dtype), tensor(builder, (columns,), dtype)
    y = builder.add("cast", builder.add("add", builder.add("mul", normal, weight), bias), dtype=dtype)
    flat = builder.view(scale, (rows,), (1,))
    return builder.build(y, mean, flat)


def several_statistics() -> Graph:
    """Four reductions of one level, over two trailing axes, one of them of a broadcast value."""
    builder = GraphBuilder()
    x, row = tensor(builder, (5, 6, 7)), tensor(builder, (5, 1, 1))
    outputs = [builder.reduce_and_drop(kind, x, (1, 2)) for kind in ("sum", "mean", "amax", "amin")]
    spread = builder.add("add", builder.add("mul", x, builder.constant(0.0)), row)
    return builder.build(*outputs, builder.add("sum", spread, axes=(1, 2)))


def integer_reductions() -> Graph:
    builder = GraphBuilder()
    x = builder.input(TensorSpec.contiguous((9, 50), "int32"))
    keep = builder.add("gt", x, builder.constant(3, "int64"))
    return builder.build(
        builder.add("sum", x, axes=(1,)),
        builder.add("amax", x, axes=(1,)),
        builder.add("amin", x, axes=(1,)),
        builder.add("sum", keep, axes=(1,)),
    )


def permuted_rows() -> Graph:
    """Rows of a tensor stored with its middle axes exchanged, and a mask of another layout."""
    builder = GraphBuilder()
    stored = tensor(builder, (3, 4, 5, 24), "float16")
    x = builder.view(stored, (3, 5, 4, 24), (480, 24, 120, 1))
    mask = builder.input(TensorSpec((3, 1, 1, 24), "bool", (24, 24, 24, 1)))
    kept = builder.add("where", mask, x, builder.constant(float("-inf")))
    peak = builder.add("amax", kept, axes=(3,))
    return builder.build(builder.add("exp", builder.add("sub", kept, peak)))


def whole_tensor() -> Graph:
    builder = GraphBuilder()
    return builder.build(builder.reduce_and_drop("mean", tensor(builder, (4, 90)), (0, 1)))


def trivial_reduction() -> Graph:
    """One reduction over an axis of extent 1, one over a real axis."""
    builder = GraphBuilder()
    x = builder.add("amax", tensor(builder, (6, 40, 1)), axes=(2,))
    return builder.build(builder.add("div", x, builder.add("sum", builder.add("abs", x), axes=(1,))))


ROWWISE: dict[str, Body] = {
    "softmax_bf16": lambda: softmax((7,), 100, "bfloat16"),
    "softmax_long": lambda: softmax((3,), 1000, "float32"),
    "softmax_heads": lambda: softmax((2, 3, 4), 64, "float16"),
    "log_softmax": lambda: softmax((5,), 300, "float32", log=True),
    "rms_norm": lambda: rms_norm(6, 512, "bfloat16"),
    "rms_norm_ragged": lambda: rms_norm(5, 600, "float16"),
    "layer_norm": lambda: layer_norm(4, 520, "float32"),
    "layer_norm_bf16": lambda: layer_norm(9, 96, "bfloat16"),
    "several_statistics": several_statistics,
    "integer_reductions": integer_reductions,
    "permuted_rows": permuted_rows,
    "whole_tensor": whole_tensor,
    "trivial_reduction": trivial_reduction,
    "double": lambda: softmax((3,), 40, "float64"),
}


def unary(kinds: tuple[str, ...], dtype: str = "float32", *, positive: bool = False) -> Graph:
    """One output a kind."""
    builder = GraphBuilder()
    x = tensor(builder, (3, 50), dtype)
    if positive:
        x = builder.add("abs", x)
    return builder.build(*(builder.add(kind, x) for kind in kinds))


def binary(dtypes: tuple[str, str], kinds: tuple[str, ...]) -> Graph:
    builder = GraphBuilder()
    x, y = tensor(builder, (4, 33), dtypes[0]), tensor(builder, (33,), dtypes[1])
    return builder.build(*(builder.add(kind, x, y) for kind in kinds))


def powers() -> Graph:
    builder = GraphBuilder()
    x = builder.add("abs", tensor(builder, (40,)))
    exponents = [builder.constant(e) for e in (2, 3, 0.5, -0.5, -1, -2, 1.7)]
    return builder.build(*(builder.add("pow", x, e) for e in exponents), builder.add("pow", x, tensor(builder, (40,))))


def layouts() -> Graph:
    """A transposed, an expanded, a sliced and a scalar input."""
    builder = GraphBuilder()
    turned = builder.input(TensorSpec((6, 20), "float32", (1, 6)))
    expanded = builder.input(TensorSpec((6, 20), "float32", (0, 1)))
    sliced = builder.input(TensorSpec((6, 20), "float16", (60, 2), 5))
    total = builder.add("add", builder.add("add", turned, expanded), builder.add("mul", sliced, tensor(builder, ())))
    return builder.build(total)


def slice_of_a_value() -> Graph:
    """Halves of a computed value, multiplied: both are computed where they are needed."""
    builder = GraphBuilder()
    value = builder.add("exp", tensor(builder, (5, 2, 16)))
    gate = builder.view(value, (5, 16), (32, 1))
    up = builder.view(value, (5, 16), (32, 1), 16)
    return builder.build(builder.add("mul", builder.add("silu", gate), up))


def constants() -> Graph:
    """Numbers on either side, alone, and beside integers and truth values."""
    builder = GraphBuilder()
    x = tensor(builder, (30,))
    count = builder.input(TensorSpec.contiguous((30,), "int64"))
    truth = builder.input(TensorSpec.contiguous((30,), "bool"))
    half = builder.constant(0.5)
    return builder.build(
        builder.add("sub", builder.constant(1.0), x),
        builder.add("where", truth, builder.constant(-1.5), builder.constant(float("inf"))),
        builder.add("add", count, builder.constant(7, "int64")),
        builder.add("mul", count, half),
        builder.add("add", x, builder.add("exp", half)),
        builder.add("cast", builder.add("mul", x, builder.constant(10.0)), dtype="int32"),
        builder.add("cast", truth, dtype="float32"),
        builder.add("cast", count, dtype="bool"),
        builder.add("maximum", x, half),
    )


_FLOAT_KINDS = ("neg", "exp", "exp2", "sigmoid", "tanh", "relu", "silu", "gelu", "gelu_tanh", "erf", "sin", "cos")
_MORE_KINDS = ("abs", "sign", "floor", "ceil", "logical_not", "isnan", "copy", "reciprocal")
_POSITIVE_KINDS = ("log", "log2", "sqrt", "rsqrt")
_TRUTH = ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or")


def over_negation() -> Graph:
    """What tells one zero from the other, of a number's opposite in each dtype."""
    builder = GraphBuilder()
    ends = []
    for dtype in ("float32", "bfloat16", "float16", "float64"):
        opposite = builder.add("neg", builder.input(TensorSpec.contiguous((30,), dtype)))
        ends += [opposite, builder.add("reciprocal", opposite)]
    return builder.build(*ends)


POINTWISE: dict[str, Body] = {
    "over_negation": over_negation,
    "floats": lambda: unary((*_FLOAT_KINDS, *_MORE_KINDS)),
    "floats_fp16": lambda: unary(("exp", "gelu", "tanh", "floor", "sign"), "float16"),
    "floats_fp64": lambda: unary(("exp", "gelu", "tanh", "sigmoid", "abs"), "float64"),
    "positive": lambda: unary(_POSITIVE_KINDS, positive=True),
    "integers": lambda: unary(("neg", "abs", "sign", "relu", "floor", "logical_not", "copy"), "int32"),
    "integers_to_float": lambda: unary(("sigmoid", "reciprocal"), "int16"),
    "binary": lambda: binary(("float32", "float32"), ("add", "sub", "mul", "div", "maximum", "minimum", *_TRUTH)),
    "binary_mixed": lambda: binary(("bfloat16", "float32"), ("add", "mul", "lt", "maximum")),
    "binary_integers": lambda: binary(("int32", "int64"), ("add", "sub", "mul", "div", "maximum", *_TRUTH)),
    "binary_float_and_integer": lambda: binary(("float16", "int32"), ("add", "mul", "lt")),
    "binary_signs": lambda: binary(("uint8", "int8"), ("add", "mul", "lt", "minimum")),
    "binary_truth": lambda: binary(("bool", "bool"), ("eq", "ne", "logical_and", "logical_or")),
    "powers": powers,
    "layouts": layouts,
    "slice_of_a_value": slice_of_a_value,
    "constants": constants,
}

BODIES: dict[str, dict[str, Body]] = {
    "contraction": CONTRACTIONS | CONTRACTION_MOVES | SIBLINGS | EPILOGUES | HALVES | APART | VECTORS,
    "attention": ATTENTION | PROLOGUES,
    "rowwise": ROWWISE | ROWWISE_MOVES,
    "pointwise": POINTWISE | POINTWISE_MOVES,
}


def kernel(family: str, name: str) -> Kernel:
    return Kernel(family, BODIES[family][name]())
