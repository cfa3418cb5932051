"""Softmaxes, norms and variances in the ops of our graphs.

Everything inside is float32 (float64 for float64), and only the last op has the dtype of the program, as torch's
own kernels compute them.
"""

from __future__ import annotations

import math

from engine.capture.lowering import Lowering, Value


def inside(dtype: str) -> str:
    """The dtype in which a composite op computes."""
    return "float64" if dtype == "float64" else "float32"


def softmax(low: Lowering, x: Value, axis: int, dtype: str, log: bool) -> Value:
    """exp(x - max) / sum, or its logarithm (x - max) - log(sum)."""
    order = (*(i for i in range(len(x.shape)) if i != axis), axis)
    moved = low.permute(x, order) if order != tuple(range(len(x.shape))) else x
    wide, last = inside(low.dtype(x)), (len(x.shape) - 1,)
    highest = low.reduce("amax", moved, last, True, wide)
    shifted = low.pointwise("sub", moved, highest, dtype=wide)
    powers = low.pointwise("exp", shifted, dtype=wide)
    total = low.reduce("sum", powers, last, True, wide)
    if log:
        done = low.pointwise("sub", shifted, low.pointwise("log", total, dtype=wide), dtype=dtype)
    else:
        done = low.pointwise("div", powers, total, dtype=dtype)
    if moved is x:
        return done
    return low.permute(done, tuple(order.index(i) for i in range(len(order))))


def layer_norm(
    low: Lowering, x: Value, count: int, weight: Value | None, bias: Value | None, eps: float, dtype: str
) -> tuple[Value, Value, Value]:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last `count` axes; also the mean and 1 / sqrt."""
    wide = inside(low.dtype(x))
    axes = tuple(range(len(x.shape) - count, len(x.shape)))
    mean = low.reduce("mean", x, axes, True, wide)
    centred = low.pointwise("sub", x, mean, dtype=wide)
    square = low.pointwise("mul", centred, centred, dtype=wide)
    variance = low.reduce("mean", square, axes, True, wide)
    scale = low.pointwise("rsqrt", low.pointwise("add", variance, eps, dtype=wide), dtype=wide)
    done = low.pointwise("mul", centred, scale, dtype=wide if weight is not None or bias is not None else dtype)
    if weight is not None:
        done = low.pointwise("mul", done, weight, dtype=wide if bias is not None else dtype)
    if bias is not None:
        done = low.pointwise("add", done, bias, dtype=dtype)
    return done, mean, scale


def rms_norm(low: Lowering, x: Value, count: int, weight: Value | None, eps: float, dtype: str) -> tuple[Value, Value]:
    """x / sqrt(mean(x^2) + eps) * weight over the last `count` axes; also 1 / sqrt."""
    wide = inside(low.dtype(x))
    axes = tuple(range(len(x.shape) - count, len(x.shape)))
    mean = low.reduce("mean", low.pointwise("mul", x, x, dtype=wide), axes, True, wide)
    scale = low.pointwise("rsqrt", low.pointwise("add", mean, eps, dtype=wide), dtype=wide)
    done = low.pointwise("mul", x, scale, dtype=wide if weight is not None else dtype)
    return (low.pointwise("mul", done, weight, dtype=dtype) if weight is not None else done), scale


def variance(
    low: Lowering, x: Value, axes: tuple[int, ...], correction: float, keep: bool, dtype: str
) -> tuple[Value, Value]:
    """Sum of squared distances from the mean, divided by the count less `correction`; also the mean."""
    wide = inside(low.dtype(x))
    mean = low.reduce("mean", x, axes, True, wide)
    centred = low.pointwise("sub", x, mean, dtype=wide)
    total = low.reduce("sum", low.pointwise("mul", centred, centred, dtype=wide), axes, keep, wide)
    degrees = max(math.prod(x.shape[i] for i in axes) - correction, 0.0)
    scale = 1.0 / degrees if degrees else math.inf
    done = low.pointwise("mul", total, scale, dtype=dtype)
    return done, low.reduce("mean", x, axes, keep, dtype)


def batch_norm(
    low: Lowering,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    statistics: tuple[Value, Value],
    eps: float,
    dtype: str,
) -> Value:
    """(x - mean) / sqrt(variance + eps) * weight + bias, with a mean and a variance for each channel (axis 1)."""
    wide = inside(low.dtype(x))
    mean, spread = (_of_channels(low, value, x) for value in statistics)
    scale = low.pointwise("rsqrt", low.pointwise("add", spread, eps, dtype=wide), dtype=wide)
    done = low.pointwise("mul", low.pointwise("sub", x, mean, dtype=wide), scale, dtype=wide)
    return _affine(low, done, weight, bias, x, dtype)


def group_norm(
    low: Lowering, x: Value, weight: Value | None, bias: Value | None, groups: int, eps: float, dtype: str
) -> tuple[Value, Value, Value]:
    """The layer norm of each group of neighbouring channels, times weight + bias of the channel; mean, 1 / sqrt."""
    wide, batch = inside(low.dtype(x)), x.shape[0]
    split = low.reshape(x, (batch, groups, math.prod(x.shape[1:]) // groups))
    done, mean, scale = layer_norm(low, split, 1, None, None, eps, wide)
    done = _affine(low, low.reshape(done, x.shape), weight, bias, x, dtype)
    return done, low.reshape(mean, (batch, groups)), low.reshape(scale, (batch, groups))


def _affine(low: Lowering, done: Value, weight: Value | None, bias: Value | None, x: Value, dtype: str) -> Value:
    """The value times a weight and plus a bias of each channel of x, in the dtype of the program."""
    wide = inside(low.dtype(x))
    if weight is not None:
        done = low.pointwise("mul", done, _of_channels(low, weight, x), dtype=wide if bias is not None else dtype)
    if bias is not None:
        done = low.pointwise("add", done, _of_channels(low, bias, x), dtype=dtype)
    return done if low.dtype(done) == dtype else low.pointwise("cast", done, dtype=dtype)


def _of_channels(low: Lowering, value: Value, x: Value) -> Value:
    return low.reshape(value, (x.shape[1], *(1 for _ in x.shape[2:])))
