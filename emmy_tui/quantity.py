"""Numbers as a person types them: with the units that the columns write, and as exact as the columns show them."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from enum import Enum, auto


class BadQuantity(Exception):
    """The rest of a sentence that begins with the name of the column."""


class Measure(Enum):
    """What a number counts: us, bytes, things, shares of 1 as in errors, or percents."""

    TIME = auto()
    SIZE = auto()
    COUNT = auto()
    SHARE = auto()
    PERCENT = auto()


_UNITS = {
    Measure.TIME: {"us": 1.0, "ms": 1e3, "s": 1e6},
    Measure.SIZE: {"b": 1.0, "k": 2.0**10, "m": 2.0**20, "g": 2.0**30},
    Measure.PERCENT: {"%": 1.0},
}
_ALSO = {"kb": "k", "kib": "k", "mb": "m", "mib": "m", "gb": "g", "gib": "g"}
_TEXT = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?)(?P<unit>[A-Za-z%]*)", re.ASCII)
EXACTLY = 1.0 + 1e-9
"""A margin for numbers that binary fractions can't hold."""


def read_quantity(text: str, measure: Measure) -> tuple[float, float]:
    """The number in us, bytes or as it stands, and by how much another may differ that is shown as this text.

    A number that is typed with more digits than are shown is taken at its word. Raises BadQuantity.
    """
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise BadQuantity("is a finite number" if _is_endless(text) else f"is a number, not {text!r}")
    units = _UNITS.get(measure, {})
    unit = found["unit"].casefold()
    scale = units.get(_ALSO.get(unit, unit)) if unit else 1.0
    if scale is None:
        known = f"has the units {', '.join(units)}" if units else "has no unit"
        raise BadQuantity(f"{known}, not {found['unit']!r}")
    number = float(found["number"]) * scale
    if not math.isfinite(number):
        raise BadQuantity(f"is a finite number, not {text!r}")
    exponent = Decimal(found["number"]).as_tuple().exponent
    typed = -int(exponent) - math.log10(scale) if measure is Measure.TIME else -int(exponent)
    return number, _half(abs(number), typed, scale, measure, bool(unit))


def _is_endless(text: str) -> bool:
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


def _half(number: float, typed: float, scale: float, measure: Measure, has_unit: bool) -> float:
    """Half of the last digit that is both typed and shown; 0 where the column shows every digit."""
    if measure is Measure.COUNT or (measure is Measure.SIZE and not has_unit):
        return 0.0
    if measure is Measure.SIZE:
        return 0.5 * 10 ** -max(_digits(number / scale), typed) * scale * EXACTLY
    if measure is Measure.SHARE:
        return 0.5 * 10 ** -max(1 - math.floor(math.log10(number)), typed) * EXACTLY if number else 0.0
    if measure is Measure.PERCENT:
        return 0.5 * 10 ** -max(1 if number < 10 else 0, typed) * EXACTLY
    bounds = ((1e6, -4), (1e5, -3), (1e3, 0), (1e2, 1), (10.0, 2))
    shown = next((decimals for bound, decimals in bounds if number >= bound), 3)
    return 0.5 * 10 ** -max(float(shown), typed) * EXACTLY


def _digits(number: float) -> int:
    """Decimals of a size in its unit, of which three digits are shown."""
    return 0 if number >= 100 else 2 - math.floor(math.log10(number)) if number > 0 else 2
