"""The ATen ops that a graph may call as they are: what no kernel is generated for, from a fixed list.

A call is data: the op's full name and the canonical JSON text of its arguments, in which {"tensor": i} stands for
the op's input i and {"dtype": name} for a dtype. An op with several results is called once for each that is needed,
and the call says which. Nothing outside the list is accepted, so a body from a database
calls only functions that compute a tensor from tensors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from engine.ir.graph import DTYPE_BYTES
from engine.ir.shapes import GraphError

CONVOLUTION = "aten.convolution.default"

PRODUCT = "aten.matmul.default"
DIVISION = "aten.div.Tensor_mode"

_OF_ELEMENTS = (
    *("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "erfinv", "lgamma", "digamma"),
    *("log10", "round", "trunc", "frac", "sgn", "signbit", "isinf", "isposinf", "isneginf", "logical_xor", "prod"),
    *("bitwise_not", "hypot", "copysign", "fmax", "fmin", "nan_to_num", "heaviside", "any", "all", "i0"),
)
_OF_PAIRS = (
    *("round.decimals", "fmod.Tensor", "fmod.Scalar", "div.Tensor_mode", "div.Scalar_mode", "logaddexp.default"),
    *("bitwise_and.Scalar", "bitwise_or.Scalar", "bitwise_xor.Scalar", "__lshift__.Scalar", "__rshift__.Scalar"),
    *("bitwise_left_shift.Tensor_Scalar", "bitwise_right_shift.Tensor_Scalar"),
)
_OF_ROWS = (
    *("sort.default", "sort.stable", "topk.default", "prod.dim_int", "any.dim", "any.dims", "all.dim", "all.dims"),
    *("max.dim", "min.dim", "median.default", "median.dim", "kthvalue.default", "mode.default", "cummax.default"),
    *("cummin.default", "linalg_vector_norm.default", "_cdist_forward.default", "diagonal.default", "diff.default"),
)
_OF_IMAGES = (
    *("max_pool2d_with_indices.default", "max_pool3d_with_indices.default", "avg_pool1d.default", "avg_pool3d.default"),
    *("adaptive_avg_pool1d.default", "_adaptive_avg_pool3d.default", "adaptive_max_pool2d.default", "im2col.default"),
    *("pixel_shuffle.default", "pixel_unshuffle.default", "reflection_pad1d.default", "reflection_pad2d.default"),
    *("replication_pad1d.default", "replication_pad2d.default", "upsample_bicubic2d.vec", "col2im.default"),
)
_OF_MATRICES = (
    *("matmul.default", "_linalg_svd.default", "linalg_qr.default", "_linalg_eigh.default", "_linalg_det.default"),
)
_WRITES = ("slice_scatter.default", "select_scatter.default", "diagonal_scatter.default")
"""Copies of a tensor with a part of it replaced."""

TEXTS = frozenset({"floor", "trunc", "L", "U", "reduced", "complete"})
"""Texts that an op of the list takes as an argument."""

EXTERN_OPS = frozenset(
    {
        CONVOLUTION,
        "aten.cumsum.default",
        "aten.cumprod.default",
        "aten.logcumsumexp.default",
        "aten.avg_pool2d.default",
        "aten.max_pool2d.default",
        "aten._adaptive_avg_pool2d.default",
        "aten.upsample_bilinear2d.vec",
        "aten.upsample_nearest2d.vec",
        "aten.constant_pad_nd.default",
        "aten.argmax.default",
        "aten.argmin.default",
        "aten.remainder.Tensor",
        "aten.remainder.Scalar",
        "aten.bitwise_and.Tensor",
        "aten.bitwise_or.Tensor",
        "aten.bitwise_xor.Tensor",
        "aten.flip.default",
        "aten.tril.default",
        "aten.triu.default",
        "aten.repeat.default",
        "aten.atan2.default",
        "aten.log1p.default",
        "aten.expm1.default",
        "aten.mish.default",
        "aten.softplus.default",
        "aten.elu.default",
        *(f"aten.{name}.default" for name in _OF_ELEMENTS),
        *(f"aten.{name}" for name in (*_OF_PAIRS, *_OF_ROWS, *_OF_IMAGES, *_OF_MATRICES, *_WRITES)),
    }
)
"""Ops whose results depend on nothing but their arguments, and which are defined for any number.

None reads at an index that a tensor holds: inputs are drawn at random, and a gather takes any whole number."""

MAX_ARGUMENTS = 4096
_MAX_DEPTH = 4


def arguments_to_json(args: list[Any], kwargs: dict[str, Any]) -> str:
    """The canonical text of a call's arguments (None, numbers, lists, {"tensor": i}, {"dtype": name}).

    Raises GraphError for a value that JSON doesn't hold.
    """
    try:
        return _dump({"args": args, "kwargs": kwargs})
    except (TypeError, ValueError) as error:
        raise GraphError(f"has an argument that can't be written down: {error}") from None


def read_arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """Positional and named arguments of a call. Raises GraphError unless the text is canonical."""
    try:
        data = json.loads(text) if len(text) <= MAX_ARGUMENTS else None
        canonical = data is not None and set(data) == {"args", "kwargs"} and _dump(data) == text
    except (ValueError, TypeError, RecursionError):
        raise GraphError("has arguments that are no JSON") from None
    if data is None or not canonical:
        raise GraphError(f"has arguments that are no canonical JSON of at most {MAX_ARGUMENTS} characters")
    if not isinstance(data["args"], list) or not isinstance(data["kwargs"], dict):
        raise GraphError("has arguments that are no list and names")
    return data["args"], data["kwargs"]


def verify_call(op: str, arguments: str, inputs: int) -> None:
    """Raise GraphError unless the op is in the list, and each of its inputs is an argument exactly where it says."""
    if op not in EXTERN_OPS:
        raise GraphError(f"calls {op[:60]!r}, which is not in the list of ATen ops")
    args, kwargs = read_arguments(arguments)
    if set(kwargs) & {"out", "generator"}:
        raise GraphError("names an argument that writes or draws")
    named = [i for value in (*args, *kwargs.values()) for i in _tensors(value, 0)]
    if sorted(set(named)) != list(range(inputs)):
        raise GraphError(f"has {inputs} inputs, and its arguments name {sorted(set(named))[:10]}")


def _tensors(value: Any, depth: int) -> Iterator[int]:
    """The inputs that an argument names; raises for a value that no argument has."""
    if depth > _MAX_DEPTH:
        raise GraphError("has arguments that are nested too deeply")
    if isinstance(value, list):
        for item in value:
            yield from _tensors(item, depth + 1)
    elif isinstance(value, dict):
        yield from _reference(value)
    elif isinstance(value, str) and value not in TEXTS:
        raise GraphError(f"has the argument {value[:40]!r}, and no op of the list takes this text")


def _reference(value: dict[str, Any]) -> Iterator[int]:
    if set(value) == {"tensor"} and isinstance(value["tensor"], int) and not isinstance(value["tensor"], bool):
        yield value["tensor"]
    elif set(value) != {"dtype"} or value["dtype"] not in DTYPE_BYTES:
        raise GraphError("has an argument that is neither a tensor nor a dtype")


def _dump(data: object) -> str:
    return json.dumps(data, separators=(",", ":"), sort_keys=True, allow_nan=False)
