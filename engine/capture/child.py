"""The child's side of a capture: read one request from stdin, write one answer to stdout, both JSON.

What the user's code prints goes nowhere, so that the answer is the only thing on stdout. Our modules leave the
list of imported modules before the code runs: `import engine` in it finds the user's own module.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from importlib import import_module
from typing import Any

from engine.capture.errors import CaptureError, TorchMissingError
from engine.capture.target import parse_target
from engine.extras import install_text
from engine.ir.json_form import program_to_json


def main() -> None:
    """Answer {"program": text} or {"error": kind, "text": sentence}."""
    _die_with_parent()
    answer_to = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    request = json.loads(sys.stdin.read())
    try:
        answer = {"program": _capture(request)}
    except CaptureError as error:
        answer = {"error": type(error).__name__, "text": str(error)}
    with os.fdopen(answer_to, "w", encoding="utf-8") as stream:
        stream.write(json.dumps(answer))
    os._exit(0)


def _die_with_parent() -> None:
    """The user's code may loop for ever; it must not outlive whoever asked for it (PR_SET_PDEATHSIG is 1)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def _capture(request: dict[str, Any]) -> str:
    target = parse_target(request["target"])
    try:
        trace = import_module("engine.capture.trace")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "torch":
            raise
        text = f"Capturing a program needs torch, which isn't installed: {install_text('tune')}."
        raise TorchMissingError(text) from None
    _give_way()
    return program_to_json(trace.trace(target, request["device"]))


def _give_way() -> None:
    """The name `engine` and the first place on the path belong to the user's code from here on."""
    for name in [name for name in sys.modules if name == "engine" or name.startswith("engine.")]:
        del sys.modules[name]
    sys.path[0] = os.getcwd()
