"""Where code lies that isn't the user's own: Python's, torch's, ours, and that of installed packages."""

from __future__ import annotations

import functools
from pathlib import Path

import torch

STANDARD = str(Path(functools.__file__).parent)
"""Python's own modules."""
TORCH = str(Path(torch.__file__).parent)
OURS = str(Path(__file__).resolve().parents[1])
_PACKAGES = ("site-packages", "dist-packages")


def in_packages(file: str) -> bool:
    """Whether the file is one of an installed package."""
    return any(folder in file for folder in _PACKAGES)
