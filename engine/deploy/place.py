"""Which GPU and which versions a command would run with here, asked in a child process, since only triton can tell."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from engine.vocabulary import Context, Target

LIMIT_S = 120
_ROOT = str(Path(__file__).resolve().parents[2])
_CODE = f"""
import json, sys
from dataclasses import asdict
sys.path.insert(0, {_ROOT!r})
from engine.runtime import read_context, read_target
index = int(sys.argv[1])
print(json.dumps([asdict(read_context(index)), asdict(read_target(index))]))
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where times are taken: their context, and the chip that code is generated for."""

    context: Context
    target: Target


def has_driver() -> bool:
    """Whether NVIDIA's driver can be loaded at all; whether it works is for a child to say."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def this_place(index: int = 0) -> Place | None:
    """That of CUDA device `index`; None where no GPU can be used. Takes a second or two where there is a driver."""
    if not has_driver():
        return None
    try:
        child = subprocess.run(
            [sys.executable, "-P", "-c", _CODE, str(index)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            env=dict(os.environ),
        )
        context, target = json.loads(child.stdout.splitlines()[-1])
        return Place(Context(**context), Target(**target))
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError, TypeError):
        return None
