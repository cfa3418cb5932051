"""The parent's side of a capture: user code runs in a child process of its own group.

The child starts on our own entry point and not on the folder that the user stands in, so that a module of theirs
that is called `engine` is never taken for ours, and a crash or a hang of their code ends the child alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from engine.capture.errors import ERROR_TYPES, CaptureCrashError, CaptureTimeoutError
from engine.capture.target import TargetOptions, parse_target
from engine.ir.json_form import program_from_json
from engine.ir.plan import Program
from engine.ir.shapes import GraphError

TIMEOUT_S = 120.0
LOOK_S = 0.1
"""How often is looked whether the capture was given up, in seconds."""
_HOUSE = str(Path(__file__).resolve().parents[2])
_ENTRY = f"import sys; sys.path.insert(0, {_HOUSE!r}); from engine.capture.child import main; main()"


def capture(
    target: str,
    options: TargetOptions | None = None,
    *,
    device: str = "cuda",
    timeout_s: float = TIMEOUT_S,
    given_up: Callable[[], bool] = lambda: False,
) -> Program:
    """Capture the call that `target` ends with, or with `options` the model or file that it names.

    A line of `target_text` holds its options itself. `device` is the program's device where the text names none.
    The capture ends as soon as `given_up` says so.

    Neither a GPU nor CUDA is needed, and no tensor is allocated. Raises CaptureError (see engine.capture.errors).
    """
    request = json.dumps({"target": parse_target(target, options).text, "device": device})
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", _ENTRY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        env=dict(os.environ),
    )
    try:
        answer, complaint = _converse(child, request, timeout_s, given_up)
    finally:
        _end(child)
    return _read(answer, complaint, child.returncode)


def _converse(
    child: subprocess.Popen[str], request: str, timeout_s: float, given_up: Callable[[], bool]
) -> tuple[str, str]:
    """What the child prints and what it complains of, until it ends. Raises CaptureTimeoutError."""
    ends = time.monotonic() + timeout_s
    unsent: str | None = request
    while True:
        left_s = ends - time.monotonic()
        try:
            return child.communicate(unsent, timeout=max(min(left_s, LOOK_S), 0))
        except subprocess.TimeoutExpired:
            unsent = None  # it is kept, and sent on
            if given_up():
                raise CaptureTimeoutError("The code was stopped, since nobody waits for it any more.") from None
            if left_s <= LOOK_S:
                raise CaptureTimeoutError(f"The code ran longer than {timeout_s:g} s and was stopped.") from None


def _end(child: subprocess.Popen[str]) -> None:
    """Leave no process of the group behind, whatever the user's code has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _read(answer: str, complaint: str, status: int) -> Program:
    try:
        data = json.loads(answer)
        if "error" in data:
            raise ERROR_TYPES[data["error"]](data["text"])
        return program_from_json(data["program"])
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, GraphError):
            raise CaptureCrashError(f"The captured program is not one that kernels cover: {error}.") from None
        lines = [line.strip() for line in complaint.splitlines() if line.strip()]
        ended = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        last = f": {lines[-1][:200]}" if lines else ""
        raise CaptureCrashError(f"The process that runs the code died ({ended}){last}") from None
