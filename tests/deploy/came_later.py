"""Calls before and after something comes that wasn't there, in Triton's interpreter: a program, since Triton decides at
import whether it interprets.

`python -m tests.deploy.came_later` prints one JSON object: for each way whether both calls give what eager gives, and
what was said; and what of outputs is one object.
"""

from __future__ import annotations

import json
import os
import types
from collections.abc import Callable
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch

import engine
from engine.deploy.backend import emmy_backend
from tests.capture.composites import list_composites_once
from tests.deploy.hearing import heard
from tests.deploy.later import LATER, taken_away

torch.set_num_threads(1)
# decomposing takes five times as long as all that is tested here, and the ops of these functions need none
torch.export.ExportedProgram.run_decompositions = lambda self, table: self
HELD = torch.ones(4)
LIBRARY = torch.library.Library("came_later", "DEF")
LIBRARY.define("scaled(Tensor a) -> Tensor")
FACTOR = 2.0


def _scaled(a: torch.Tensor) -> torch.Tensor:
    return a * FACTOR


LIBRARY.impl("scaled", _scaled, "CompositeImplicitAutograd")


def after(function: Callable[..., Any], call: Callable[..., Any], put: Callable[[], Any]) -> list[bool]:
    """Whether calls give what eager gives: one before, and two after something was put somewhere."""
    x = torch.ones(4)
    right = [torch.allclose(call(x), function(x))]
    put()
    return [*right, *(torch.allclose(call(x), function(x)) for _ in range(2))]


def ways() -> dict[str, Any]:
    """Each of LATER, compiled."""
    found = {}
    for name, make in LATER.items():
        function, put = make()
        call = engine.compile(function)
        with heard() as said:
            right = after(function, call, put)
        found[name] = {"right": right, "said": said}
        taken_away()
    return found


def in_trials() -> dict[str, Any]:
    """Functions that put a new name somewhere themselves: what three calls give, and what is there before the first."""

    class Kind:
        pass

    options = types.ModuleType("options")

    def by_global(x: torch.Tensor) -> torch.Tensor:
        global COUNTED
        COUNTED = globals().get("COUNTED", 0) + 1
        return x * COUNTED

    def by_class(x: torch.Tensor) -> torch.Tensor:
        Kind.counted = getattr(Kind, "counted", 0) + 1  # type: ignore[attr-defined]
        return x * Kind.counted  # type: ignore[attr-defined]

    def by_module(x: torch.Tensor) -> torch.Tensor:
        options.counted = getattr(options, "counted", 0) + 1  # type: ignore[attr-defined]
        return x * options.counted  # type: ignore[attr-defined]

    x, found = torch.ones(4), {}
    owners = {"global": (by_global, globals()), "class": (by_class, Kind), "module": (by_module, options)}
    for name, (function, owner) in owners.items():
        with heard() as said:
            call = engine.compile(function, (x,))
            kept = owner if isinstance(owner, dict) else vars(owner)
            clean = "counted" not in kept and "COUNTED" not in kept
            results = [float(call(x)[0]) for _ in range(3)]
        found[name] = {"clean": clean, "results": results, "said": said}
    return found


def by_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    torch._dynamo.reset()
    compiled: Callable[..., Any] = torch.compile(function, backend=emmy_backend)
    return compiled


def frozen() -> dict[str, Any]:
    """A tensor's version and an op of Python code, by both ways to compile."""
    found = {}
    for name, compiled in (("engine", engine.compile), ("torch", by_torch)):
        with heard() as said:
            version = after(by_version, compiled(by_version), lambda: HELD.add_(0))
            op = after(by_op, compiled(by_op), lambda: globals().update(FACTOR=FACTOR + 1.0))
        found[name] = {"version": version, "op": op, "said": said}
    return found


def by_version(a: torch.Tensor) -> torch.Tensor:
    return a * (HELD._version + 1)


def by_op(a: torch.Tensor) -> torch.Tensor:
    scaled: torch.Tensor = torch.ops.came_later.scaled(a)
    return scaled + 1


def outputs() -> dict[str, Any]:
    """Which outputs are one object, an argument, or a tensor that the function holds."""

    def many(a: torch.Tensor) -> Any:
        z, y = a * 2, a * 2
        return {"z": z, "more": [z + 1, z, 3]}, y, a, HELD, a.view(4), a.contiguous(), HELD.view(4)

    x, found = torch.ones(4), {}
    for name, call in (("eager", many), ("engine", engine.compile(many)), ("torch", by_torch(many))):
        made, y, same, held, seen, also, seen_held = call(x)
        z, more = made["z"], made["more"]
        views = [seen is x, also is x, seen_held is HELD, seen.data_ptr() == x.data_ptr()]
        found[name] = [z is more[1], z is y, z is more[0], same is x, held is HELD, more[2], *views]
        seen.resize_(2)
        found[name].append(list(x.shape))
    return found


def of_equal_programs() -> list[bool]:
    """Whether what is returned is the argument, of two graphs of torch.compile that do the same."""

    def itself(a: torch.Tensor) -> Any:
        return a * 2, a.contiguous()

    def view(a: torch.Tensor) -> Any:
        return a * 2, a.view(4)

    x = torch.ones(4)
    torch._dynamo.reset()
    return [torch.compile(function, backend=emmy_backend)(x)[1] is x for function in (itself, view)]


if __name__ == "__main__":
    with torch.no_grad():
        found: dict[str, Any] = {"ways": ways(), "trials": in_trials()}
        list_composites_once()
        print(json.dumps(found | {"frozen": frozen(), "outputs": outputs(), "equal": of_equal_programs()}))
