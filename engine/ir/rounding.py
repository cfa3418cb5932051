"""What a tensor of a 16-bit float dtype holds of a number: constants are written by the number that they are."""

from __future__ import annotations

import math
import struct


def rounded(number: float, dtype: str) -> float:
    """The number as a tensor of `dtype` holds it, rounded to float32 on the way, as torch does. Wider floats, in which
    a constant is computed anyway, and other dtypes leave it as it is.

    >>> rounded(0.1, "bfloat16"), rounded(0.1, "float16"), rounded(1e6, "float16"), rounded(0.1, "float32")
    (0.10009765625, 0.0999755859375, inf, 0.1)
    """
    if dtype not in ("float16", "bfloat16") or not math.isfinite(number):
        return number
    try:
        (wide,) = struct.unpack("<f", struct.pack("<f", number))
        if dtype == "float16":
            return float(struct.unpack("<e", struct.pack("<e", wide))[0])
    except OverflowError:
        return math.copysign(math.inf, number)
    (bits,) = struct.unpack("<I", struct.pack("<f", wide))
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])
