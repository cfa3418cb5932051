"""What Triton's interpreter gets wrong or leaves out, put right while a kernel runs in it.

Each work-around names the condition that ends it. They are in force only inside `interpreter_repairs`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime import interpreter


@contextlib.contextmanager
def interpreter_repairs() -> Iterator[None]:
    """Repair the interpreter of this process while the block runs."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(interpreter.InterpreterBuilder, "create_dot", _dot))
        rounding = _rounding(interpreter.InterpreterBuilder.cast_impl)
        stack.enter_context(mock.patch.object(interpreter.InterpreterBuilder, "cast_impl", rounding))
        stack.enter_context(mock.patch.object(libdevice, "tanh", _function(np.tanh)))
        stack.enter_context(mock.patch.object(libdevice, "pow", _function(np.power)))
        stack.enter_context(mock.patch.object(libdevice, "fast_dividef", _function(np.divide)))
        stack.enter_context(mock.patch.object(interpreter, "_patch_lang", _once_a_module(interpreter._patch_lang)))
        yield


def _dot(builder: Any, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
    """Multiply in the accumulator's dtype. Triton 3.6 multiplies the raw bits of bfloat16.

    Ends when the interpreter's own create_dot converts bfloat16 operands.
    """
    product = np.matmul(_numbers(a), _numbers(b), dtype=d.data.dtype)
    return interpreter.TensorHandle(product + d.data, d.dtype.scalar)


def _numbers(handle: Any) -> Any:
    if handle.dtype.scalar == tl.bfloat16:
        return (handle.data.astype(np.uint32) << 16).view(np.float32)
    return handle.data


def _rounding(cast: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Casts to bfloat16 round to the nearest, of two the even one, as a GPU's do, and casts from it read its numbers.

    Ends when the interpreter rounds (3.6 drops the bits that don't fit) and casts between bfloat16 and every dtype by
    value (3.6 does so for float32 alone).
    """

    def call(builder: Any, source: Any, target: Any) -> Any:
        wanted = target.scalar
        if tl.bfloat16 not in (source.dtype.scalar, wanted) or source.dtype.scalar == wanted:
            return cast(builder, source, target)
        numbers = _numbers(source)
        if wanted != tl.bfloat16:
            read = interpreter.TensorHandle(numbers, tl.float32)
            return read if wanted == tl.float32 else cast(builder, read, target)
        return interpreter.TensorHandle(_bfloat16_bits(np.asarray(numbers)), tl.bfloat16)

    return call


def _bfloat16_bits(numbers: Any) -> Any:
    """The bits of the nearest bfloat16 numbers; a NaN stays one."""
    with np.errstate(all="ignore"):
        wide = numbers.astype(np.float32)
    bits = wide.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(wide), np.uint32(0x7FC0), rounded).astype(np.uint16)


def _once_a_module(patch: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Put the interpreter's functions into a module's language once, and not at every call of a helper.

    Ends when a call of a device function patches nothing (3.6 goes through the whole language each time, a fifth of
    what an attention kernel takes).
    """
    seen: set[int] = set()

    def patched(function: Any) -> Any:
        module = id(function.__globals__)
        if module in seen:
            return interpreter._LangPatchScope()
        seen.add(module)
        return patch(function)

    return patched


def _function(compute: Callable[..., Any]) -> Callable[..., Any]:
    """A libdevice function on the interpreter's tensors.

    Ends when the interpreter implements extern_elementwise (3.6 raises NotImplementedError).
    """

    def call(*arguments: Any) -> Any:
        values = [argument.handle.data for argument in arguments]
        like = max(arguments, key=lambda argument: argument.handle.data.ndim)
        with np.errstate(all="ignore"):
            result = compute(*values).astype(values[0].dtype)
        return tl.tensor(interpreter.TensorHandle(result, like.dtype.scalar), like.type)

    return call
