"""The tuner: capture, grouping, code generation, search, measuring, and one SQLite file that keeps it all.

`compile` is the one name that needs torch, and it is loaded when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name != "compile":
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    return importlib.import_module("engine.deploy.backend").compile_callable
