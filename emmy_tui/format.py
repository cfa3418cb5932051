"""Numbers as a person reads them: us, bytes, shares, changes and clock times. A missing number is "-", never 0."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

MOST_DECIMALS = 4
"""Of a ratio near 1; the machine's own noise is larger than the next one."""


def us(value: float | None) -> str:
    """A time in us with four significant digits: 3.071, 12.41, 152.3, 1842; from 0.1 s on with its unit."""
    if value is None or not math.isfinite(value):
        return "-"
    if value >= 1e6:
        return f"{value / 1e6:.2f}s"
    if value >= 1e5:
        return f"{value / 1e3:.0f}ms"
    if value >= 1000:
        return f"{value:.0f}"
    if value >= 100:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 10 else f"{value:.3f}"


def change(first: float | None, best: float | None) -> str:
    """How `best` differs from `first`, in percent without the sign of percent: -31, -4.2, 0."""
    if first is None or best is None or first <= 0:
        return "-"
    percent = (best / first - 1) * 100
    if abs(percent) < 0.05:
        return "0"
    return f"{percent:+.1f}" if abs(percent) < 10 else f"{percent:+.0f}"


def share(part: float | None, whole: float | None) -> str:
    """A share of 0 to 1 in percent."""
    if part is None or not whole:
        return "-"
    percent = part / whole * 100
    return f"{percent:.0f}%" if percent >= 9.95 or percent == 0 else f"{percent:.1f}%"


def ratio(value: float) -> str:
    """A share that is already a ratio, in percent."""
    return share(value, 1.0)


def count(value: int) -> str:
    """A count in at most five characters: 412, 48211, 482k, 1.2M."""
    if value < 100_000:
        return str(value)
    return f"{value // 1000}k" if value < 1_000_000 else f"{value / 1e6:.1f}M"


def plural(number: int, thing: str) -> str:
    """1 row, 48211 rows, 6 launches."""
    ending = "es" if thing.endswith(("ch", "sh", "s", "x")) else "s"
    return f"{count(number)} {thing}{'' if number == 1 else ending}"


def size(value: int) -> str:
    """Bytes in at most five characters up to a GiB: 512, 8K, 49.5K, 227K, 64M."""
    for unit, scale in (("M", 1 << 20), ("K", 1 << 10)):
        if value >= scale:
            return f"{value / scale:.0f}{unit}" if value >= 100 * scale else f"{value / scale:.3g}{unit}"
    return str(value)


def duration(seconds: float) -> str:
    """Hours, minutes and seconds: 00:12:41."""
    whole = max(0, int(seconds))
    return f"{whole // 3600:02d}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def clock(at: float) -> str:
    """Local time of day of a moment in seconds since 1970."""
    return time.strftime("%H:%M:%S", time.localtime(at)) if at else "--:--:--"


def moment(at: float) -> str:
    """Local date and time of a moment in seconds since 1970: 2026-05-28 20:26."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else "-"
    except (OverflowError, ValueError, OSError):
        return "-"


def ratios(values: Sequence[float], *, apart: bool) -> tuple[str, ...]:
    """Ratios near 1 in three decimals; where a verdict told the two times `apart`, in as many as show which side of 1
    each is on, up to MOST_DECIMALS."""
    decimals = 3
    while apart and decimals < MOST_DECIMALS and any(value != 1 and round(value, decimals) == 1 for value in values):
        decimals += 1
    return tuple(f"{value:.{decimals}f}" for value in values)
