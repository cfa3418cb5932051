"""A function or a module of a Python file, fed with what the `example_inputs()` beside it gives.

`example_inputs` may take any of `dtype` (a torch dtype), `seq_len` and `batch`; it returns a tensor, a list or tuple
of arguments, or a dictionary of named ones.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from engine.capture.convert import convert
from engine.capture.errors import TargetMissingError, TargetSyntaxError, UserCodeError
from engine.capture.export import allows_tf32, export
from engine.capture.feeding import Fed, Feed
from engine.capture.meta import OnMeta, first_named, user_code
from engine.capture.target import FileTarget, TargetOptions, source_digest
from engine.ir.plan import Program

EXAMPLES = "example_inputs"


def trace_file(target: FileTarget, device: str) -> Program:
    """Run the file, export its function or module on the example inputs, and convert it. Raises CaptureError."""
    _check_source(target)
    devices: list[str] = []
    with torch.no_grad(), OnMeta(devices), user_code():
        function, args, kwargs = example_call(target)
        fed = Fed(function, Feed.of(function, args, kwargs), devices)
        fed(*fed.feed.tensors)
    program = export(fed, fed.feed.tensors)
    graph = convert(program, fed.feed.named(), allows_tf32())
    return Program(graph, target.text, first_named(devices, device))


def example_call(target: FileTarget) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """The function or module of the file, for inference, and its example arguments, on torch's default device."""
    namespace = _run(target.path)
    function = _find(namespace, target)
    if isinstance(function, type) and issubclass(function, nn.Module):
        function = function()
    if isinstance(function, nn.Module):
        function.eval()
    return function, *_examples(namespace, target)


def _check_source(target: FileTarget) -> None:
    now = source_digest(f"{target.path}:{target.attribute}")
    if target.source and target.source != now:
        raise TargetMissingError(f"{target.path} has changed since this target was named: name it anew.")


def _run(path: str) -> dict[str, Any]:
    """The file's names; it is a module of its own, and finds its neighbours as a script would."""
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        text = decode_source(Path(path).read_bytes())
    except (SyntaxError, UnicodeDecodeError):
        raise TargetSyntaxError(f"{path} is no text in UTF-8: save it as such, or say its encoding.") from None
    try:
        code = compile(text, path, "exec")
    except (SyntaxError, ValueError) as error:
        raise TargetSyntaxError(f"{path} doesn't parse: {str(error).splitlines()[0]}.") from None
    module = ModuleType(Path(path).stem)
    module.__file__ = path
    sys.modules.setdefault(module.__name__, module)
    exec(code, module.__dict__)
    return module.__dict__


def _find(namespace: dict[str, Any], target: FileTarget) -> Callable[..., Any]:
    first, *rest = target.attribute.split(".")
    found = namespace.get(first)
    for name in rest:
        found = getattr(found, name, None)
    if not callable(found):
        raise TargetMissingError(f"{target.path} has no function or module `{target.attribute}`.")
    return found  # type: ignore[no-any-return]


def _examples(namespace: dict[str, Any], target: FileTarget) -> tuple[tuple[Any, ...], dict[str, Any]]:
    make = namespace.get(EXAMPLES)
    if not callable(make):
        raise TargetMissingError(
            f"{target.path} has no `{EXAMPLES}()`: add one that returns the arguments of `{target.attribute}`."
        )
    made = make(**_wanted(make, target.options))
    if isinstance(made, dict):
        return (), made
    if isinstance(made, torch.Tensor):
        return (made,), {}
    if not isinstance(made, list | tuple):
        raise UserCodeError(
            f"`{EXAMPLES}()` returns a {type(made).__name__}: return a tensor, a tuple or a dictionary."
        )
    return tuple(made), {}


def _wanted(make: Callable[..., Any], options: TargetOptions) -> dict[str, Any]:
    given = {"dtype": getattr(torch, options.dtype), "seq_len": options.seq_len, "batch": options.batch}
    return {name: given[name] for name in inspect.signature(make).parameters if name in given}
