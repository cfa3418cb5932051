"""Programs of these tests, each in a process of its own: Triton decides at import whether it interprets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def printed_by(*words: str, limit_s: int) -> dict[str, Any]:
    """The JSON object in the last line that `python ...` prints, where the user has no database yet."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "XDG_DATA_HOME": str(ROOT / "no such folder")}
    command = [sys.executable, *words]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
