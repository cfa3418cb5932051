"""The process that ncu looks at: it launches one kernel, of which a request in a file says everything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.codegen import KernelSource
from engine.ir.json_form import kernel_from_json
from engine.runtime import launch_profiled
from engine.vocabulary import Target


def profile(path: str) -> None:
    """Launch what {"kernel", "source", "target", "folder", "index"} names; kernel and source "" for a mere try."""
    asked: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    kernel = kernel_from_json(asked["kernel"]) if asked["kernel"] else None
    source = KernelSource.from_json(asked["source"]) if asked["source"] else None
    launch_profiled(kernel, source, Target(**asked["target"]), Path(asked["folder"]), int(asked["index"]))
