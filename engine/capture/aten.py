"""Every ATen op that a captured graph may hold, by name, as our ops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.capture import moving, norms, viewing
from engine.capture.attention import attention
from engine.capture.calls import call_named
from engine.capture.errors import UnsupportedOpError, UnsupportedTensorError
from engine.capture.lowering import Handler, Lowering, Operand, Result, Value
from engine.ir.extern import DIVISION
from engine.ir.graph import TensorSpec
from engine.ir.shapes import broadcast_shapes


def _same(kind: str) -> Handler:
    def handler(low: Lowering, dtype: str, *operands: Operand) -> Value:
        return low.pointwise(kind, *operands, dtype=dtype)

    return handler


def _scaled(kind: str, swap: bool = False) -> Handler:
    """add and sub with their `alpha`; rsub swaps the operands."""

    def handler(low: Lowering, dtype: str, x: Operand, y: Operand, alpha: float = 1) -> Value:
        if alpha != 1:
            y = low.pointwise("mul", y, alpha, dtype=dtype) if isinstance(y, Value) else y * alpha
        return low.pointwise(kind, *((y, x) if swap else (x, y)), dtype=dtype)

    return handler


def _div(low: Lowering, dtype: str, x: Operand, y: Operand, rounding_mode: str | None = None) -> Value:
    if rounding_mode is None:
        return low.pointwise("div", x, y, dtype=dtype)
    # a quotient that is rounded isn't the floor of the one that torch gives: 0.7 // 0.1 is 6, by way of the remainder
    if isinstance(y, Value) and "float" not in dtype:
        # torch has no quotient by a whole 0, and a call is defined for any number.
        zero = low.pointwise("eq", y, 0, dtype="bool")
        y = low.pointwise("where", zero, 1, y, dtype=low.dtype(y))
    shape = broadcast_shapes([o.shape for o in (x, y) if isinstance(o, Value)])
    out = TensorSpec.contiguous(shape, dtype)
    return call_named(low, DIVISION, (x, y), {"rounding_mode": rounding_mode}, out)


def _pow(low: Lowering, dtype: str, x: Operand, y: Operand) -> Value:
    known = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    if isinstance(x, Value) and not isinstance(y, Value):
        if y == 1:
            return low.pointwise("copy", x, dtype=dtype)
        if y == 2:
            return low.pointwise("mul", x, x, dtype=dtype)
        if y == 3:
            return low.pointwise("mul", low.pointwise("mul", x, x, dtype=norms.inside(dtype)), x, dtype=dtype)
        if y in known and "float" in dtype:
            return low.pointwise(known[y], x, dtype=dtype)
    return low.pointwise("pow", x, y, dtype=dtype)


def _gelu(low: Lowering, dtype: str, x: Value, approximate: str = "none") -> Value:
    return low.pointwise("gelu_tanh" if approximate == "tanh" else "gelu", x, dtype=dtype)


def _leaky_relu(low: Lowering, dtype: str, x: Value, slope: float = 0.01) -> Value:
    positive = low.pointwise("gt", x, 0, dtype="bool")
    return low.pointwise("where", positive, x, low.pointwise("mul", x, slope, dtype=dtype), dtype=dtype)


def _clamp(low: Lowering, dtype: str, x: Value, low_end: Operand | None = None, high: Operand | None = None) -> Value:
    if low_end is not None:
        x = low.pointwise("maximum", x, low_end, dtype=dtype)
    return low.pointwise("minimum", x, high, dtype=dtype) if high is not None else x


def _hardtanh(low: Lowering, dtype: str, x: Value, low_end: float = -1.0, high: float = 1.0) -> Value:
    return _clamp(low, dtype, x, low_end, high)


def _cast(low: Lowering, dtype: str, x: Value, **_: object) -> Value:
    return x if low.dtype(x) == dtype else low.cast(x, dtype)


def _identity(low: Lowering, dtype: str, x: Value, **_: object) -> Value:
    return x


def _truth(kind: str) -> Handler:
    """Bitwise ops on bool are logical ops; on integers there is no kernel."""

    def handler(low: Lowering, dtype: str, *operands: Operand) -> Value:
        if dtype != "bool":
            raise UnsupportedOpError(f"A bitwise op on {dtype} is not supported; only on bool.")
        return low.pointwise(kind, *operands, dtype=dtype)

    return handler


def _axes(x: Value, dims: Any) -> tuple[int, ...]:
    if dims is None or dims == []:
        return tuple(range(len(x.shape)))
    listed = dims if isinstance(dims, list | tuple) else [dims]
    return tuple(sorted(d % max(len(x.shape), 1) for d in listed)) if x.shape else ()


def _reduction(kind: str) -> Handler:
    def handler(low: Lowering, dtype: str, x: Value, dim: Any = None, keepdim: bool = False, **_: object) -> Value:
        return low.reduce(kind, x, _axes(x, dim), keepdim, dtype)

    return handler


def _whole(kind: str, name: str) -> Handler:
    """aten.max and aten.min; with an axis they also give positions, which is a call."""

    def handler(low: Lowering, dtype: str, x: Value, *rest: Any) -> Result:
        if len(rest) == 1 and isinstance(rest[0], Value):
            raise UnsupportedOpError(f"{name} of two tensors is not supported: use torch.{name[5:]}imum.")
        if rest and x.shape:
            found = low.reduce(kind, x, _axes(x, rest[0]), bool(rest[1:] and rest[1]), dtype)
            out = TensorSpec.contiguous(found.shape, "int64")
            return found, call_named(low, f"{name}.dim", (x, *rest), {}, out, 1)
        return low.reduce(kind, x, _axes(x, None), False, dtype)

    return handler


def _softmax(log: bool) -> Handler:
    def handler(low: Lowering, dtype: str, x: Value, dim: int, *_: object) -> Value:
        if not x.shape:
            return low.constant(0.0 if log else 1.0, dtype)
        return norms.softmax(low, x, dim % len(x.shape), dtype, log)

    return handler


def _layer_norm(
    low: Lowering, dtype: str, x: Value, shape: list[int], weight: Value | None, bias: Value | None, eps: float
) -> Result:
    return norms.layer_norm(low, x, len(shape), weight, bias, eps, dtype)


_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def _batch_norm(
    low: Lowering,
    dtype: str,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    variance: Value,
    momentum: float,
    eps: float,
) -> Result:
    return norms.batch_norm(low, x, weight, bias, (mean, variance), eps, dtype), None, None


def _norm_of_batch(low: Lowering, dtype: str, x: Value, weight: Value | None, bias: Value | None, *rest: Any) -> Result:
    """With statistics of the batch itself, as an instance norm asks for them."""
    if len(rest) != 3:
        raise UnsupportedOpError("A batch norm that changes its buffers is not supported: call .eval() on the module.")
    axes = tuple(i for i in range(len(x.shape)) if i != 1)
    spread, mean = norms.variance(low, x, axes, 0.0, False, norms.inside(dtype))
    return norms.batch_norm(low, x, weight, bias, (mean, spread), rest[2], dtype), None, None


def _group_norm(low: Lowering, dtype: str, x: Value, weight: Value | None, bias: Value | None, *sizes: Any) -> Result:
    *_, groups, eps = sizes
    return norms.group_norm(low, x, weight, bias, groups, eps, dtype)


def _rms_norm(
    low: Lowering, dtype: str, x: Value, shape: list[int], weight: Value | None = None, eps: float | None = None
) -> Value:
    """Without `eps` torch takes the machine epsilon of the dtype it computes in."""
    step = _EPSILON[norms.inside(low.dtype(x))] if eps is None else eps
    return norms.rms_norm(low, x, len(shape), weight, step, dtype)[0]


def _fused_rms_norm(
    low: Lowering, dtype: str, x: Value, shape: list[int], weight: Value | None = None, eps: float | None = None
) -> Result:
    step = _EPSILON[norms.inside(low.dtype(x))] if eps is None else eps
    return norms.rms_norm(low, x, len(shape), weight, step, dtype)


def _var(low: Lowering, dtype: str, x: Value, dim: Any = None, **options: Any) -> Value:
    return _var_mean(low, dtype, x, dim, **options)[0]


def _var_mean(
    low: Lowering, dtype: str, x: Value, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Value, Value]:
    return norms.variance(low, x, _axes(x, dim), 1.0 if correction is None else correction, keepdim, dtype)


def _vector_norm(
    low: Lowering, dtype: str, x: Value, order: float = 2, dim: Any = None, keepdim: bool = False
) -> Value:
    """The square root of a sum of squares; other orders have no kernel."""
    if order != 2:
        raise UnsupportedOpError(f"aten.linalg_vector_norm of order {order} is not supported; order 2 is.")
    wide = norms.inside(dtype)
    total = low.reduce("sum", low.pointwise("mul", x, x, dtype=wide), _axes(x, dim), keepdim, wide)
    return low.pointwise("sqrt", total, dtype=dtype)


def _mm(low: Lowering, dtype: str, a: Value, b: Value, *_: object) -> Value:
    return low.matmul(a, b, dtype)


def _addmm(low: Lowering, dtype: str, bias: Value, a: Value, b: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    product = low.matmul(a, b, dtype)
    if alpha != 1:
        product = low.after_matmul("mul", product, alpha, dtype)
    if beta == 0:
        return product
    if beta != 1:
        bias = low.pointwise("mul", bias, beta, dtype=dtype)
    return low.after_matmul("add", product, bias, dtype)


def _mv(low: Lowering, dtype: str, a: Value, v: Value) -> Value:
    """A matrix and a vector, or two vectors: a product and a sum along the last axis."""
    product = low.pointwise("mul", a, v, dtype=norms.inside(dtype))
    return low.reduce("sum", product, (len(a.shape) - 1,), False, dtype)


def _full(low: Lowering, dtype: str, shape: list[int], number: Any, **_: object) -> Value:
    if isinstance(number, Value):
        raise UnsupportedTensorError("aten.full with a tensor as its value is not supported: use expand.")
    return low.held(number, dtype, tuple(shape))


def _full_like(low: Lowering, dtype: str, x: Value, number: Any, **_: object) -> Value:
    return low.held(number, dtype, x.shape)


def _scalar_tensor(low: Lowering, dtype: str, number: Any, **_: object) -> Value:
    return low.held(number, dtype)


_UNARY = ("neg", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "reciprocal", "sigmoid", "tanh", "relu", "silu")
_MORE_UNARY = ("erf", "sin", "cos", "abs", "sign", "floor", "ceil", "logical_not", "isnan")
_BINARY = ("mul", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or")

HANDLERS: Mapping[str, Handler] = {
    **{name: _same(name) for name in (*_UNARY, *_MORE_UNARY, *_BINARY, "where")},
    **{name: _reduction(name) for name in ("sum", "mean", "amax", "amin")},
    **dict.fromkeys(("clone", "alias", "detach", "lift_fresh_copy", "contiguous"), _identity),
    **dict.fromkeys(("view", "_unsafe_view", "reshape", "flatten"), viewing.reshape),
    **dict.fromkeys(("mm", "bmm", "matmul"), _mm),
    **dict.fromkeys(("addmm", "baddbmm"), _addmm),
    **dict.fromkeys(("mv", "dot"), _mv),
    **dict.fromkeys(("transpose", "t"), viewing.transpose),
    **dict.fromkeys(("split", "split_with_sizes"), viewing.split),
    "add": _scaled("add"),
    "sub": _scaled("sub"),
    "rsub": _scaled("sub", swap=True),
    "div": _div,
    "pow": _pow,
    "square": lambda low, dtype, x: _pow(low, dtype, x, 2),
    "gelu": _gelu,
    "leaky_relu": _leaky_relu,
    "clamp": _clamp,
    "clamp_min": lambda low, dtype, x, end: _clamp(low, dtype, x, end),
    "clamp_max": lambda low, dtype, x, end: _clamp(low, dtype, x, None, end),
    "hardtanh": _hardtanh,
    "_to_copy": _cast,
    "bitwise_not": _truth("logical_not"),
    "bitwise_and": _truth("logical_and"),
    "bitwise_or": _truth("logical_or"),
    "max": _whole("amax", "aten.max"),
    "min": _whole("amin", "aten.min"),
    "_softmax": _softmax(log=False),
    "_log_softmax": _softmax(log=True),
    "native_layer_norm": _layer_norm,
    "_native_batch_norm_legit_no_training": _batch_norm,
    "_native_batch_norm_legit": _norm_of_batch,
    "native_group_norm": _group_norm,
    "rms_norm": _rms_norm,
    "_fused_rms_norm": _fused_rms_norm,
    "var": _var,
    "var_mean": _var_mean,
    "linalg_vector_norm": _vector_norm,
    "permute": viewing.permute,
    "expand": viewing.arithmetic(viewing.expand),
    "unsqueeze": viewing.arithmetic(viewing.unsqueeze),
    "squeeze": viewing.arithmetic(viewing.squeeze),
    "slice": viewing.arithmetic(viewing.slice_),
    "select": viewing.arithmetic(viewing.select),
    "unbind": viewing.unbind,
    "scaled_dot_product_attention": attention,
    "arange": moving.arange,
    "embedding": moving.embedding,
    "index": moving.index,
    "index_select": moving.index_select,
    "cat": moving.cat,
    "roll": moving.roll,
    "gather": moving.gather_along,
    "copy": moving.copy,
    "index_put": moving.index_put,
    "full": _full,
    "full_like": _full_like,
    "scalar_tensor": _scalar_tensor,
}
