"""The command that runs a deployed program under NVIDIA's profiler."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parents[2])
_CODE = (
    f"import sys; sys.path.insert(0, {_ROOT!r}); from engine.deploy.bench_child import profile; profile(sys.argv[1])"
)


@contextmanager
def profiled_command(ncu: str, request: Mapping[str, object]) -> Iterator[list[str]]:
    """ncu with a process that launches the program's kernels once inside the range "emmy"; only those are profiled.

    The clocks stay as they are: a deployment runs at those, and to set them takes rights and outlives a killed ncu.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "request.json"
        path.write_text(json.dumps(dict(request)), encoding="utf-8")
        yield [
            *(ncu, "--nvtx", "--nvtx-include", "emmy/", "--set", "basic", "--target-processes", "application-only"),
            *("--clock-control", "none"),
            *(sys.executable, "-P", "-c", _CODE, str(path)),
        ]
