"""Whether a disk is as good as full: what needs room on it then fails in ways that don't say so."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

LEAST_BYTES = 4 << 20
"""With less than this, what fails without a reason of its own failed for want of space: compilers beside each other
write a few 100 KiB each, and what they had written is gone again when one looks."""


def is_scarce(folder: Path) -> bool:
    """Whether the disk of `folder` has less than LEAST_BYTES; False where that can't be told."""
    return free_bytes(folder) < LEAST_BYTES


def free_bytes(folder: Path) -> float:
    """What is left on the disk of `folder`; without end where that can't be told."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return math.inf
