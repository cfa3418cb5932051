"""What a tensor of a dtype holds of a number: constants are written by the number that they are."""

from __future__ import annotations

import math
import struct

_SMALLEST_NORMAL = 2.0**-126


def rounded(number: float, dtype: str) -> float:
    """The number as a tensor of `dtype` holds it: 16-bit floats rounded to float32 on the way, and whole numbers
    wrapped to the bits of an integer dtype, as torch does. In float32 a constant is computed anyway, so that only what
    is no normal number there changes: it is an infinity, a zero or a coarser number. Others stay as they are.

    >>> rounded(0.1, "bfloat16"), rounded(0.1, "float16"), rounded(1e6, "float16"), rounded(0.1, "float32")
    (0.10009765625, 0.0999755859375, inf, 0.1)
    >>> rounded(1e300, "float32"), rounded(1e-50, "float32"), rounded(300, "int8"), rounded(-1, "uint8")
    (inf, 0.0, 44, 255)
    """
    if isinstance(number, int) and "int" in dtype:
        return _wrapped(number, int(dtype.removeprefix("u").removeprefix("int")), signed=dtype[0] != "u")
    if dtype not in ("float16", "bfloat16", "float32") or not math.isfinite(number) or number == 0:
        return number
    wide = as_float32(number)
    if dtype == "float32":
        return number if _SMALLEST_NORMAL <= abs(wide) < math.inf else wide
    if dtype == "float16":
        return _stored(wide, "<e")
    (bits,) = struct.unpack("<I", struct.pack("<f", wide))
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def as_float32(number: float) -> float:
    """The nearest number that float32 holds: an infinity for one that is too large."""
    return _stored(number, "<f")


def _stored(number: float, form: str) -> float:
    """What is read back of a number that is written in one of struct's forms, which has infinities."""
    try:
        return float(struct.unpack(form, struct.pack(form, number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _wrapped(number: int, bits: int, signed: bool) -> int:
    kept = number & ((1 << bits) - 1)
    return kept - (1 << bits) if signed and kept >> (bits - 1) else kept
