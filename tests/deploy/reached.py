"""Tensors that are reached and changed in every way, in Triton's interpreter: a program, since Triton decides at import
whether it interprets.

`python -m tests.deploy.reached everyday|rest` prints one JSON object: for each way and the changes of that part whether
the compiled call gives what eager gives, and how many signatures run by kernels; beside the everyday changes, what
values, modes and numbers in Python come to.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch

import engine
from engine.deploy.backend import TrainingError
from tests.capture.composites import list_composites_once
from tests.deploy.hearing import heard
from tests.deploy.ways import WAYS, everyday, followed, rest

ARRAY = np.ones(4, dtype=np.float32)
HIDDEN = torch.full((4,), 3.0)
torch.set_num_threads(1)
# decomposing takes five times as long as all that is tested here, and the two ops of these functions need none
DECOMPOSING = torch.export.ExportedProgram.run_decompositions
torch.export.ExportedProgram.run_decompositions = lambda self, table: self


def values() -> dict[str, Any]:
    """Arguments that are equal and compute something else, and the other way round: right, and how often built."""
    x = torch.randn(4, 4)
    imaginary = torch.view_as_complex(torch.randn(4, 4, 2))
    pairs: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
        "zeros": (lambda a, s: (a + 1.0) * s, [(x, 0.0), (x, -0.0), (x, 0.0)]),
        "NaN": (lambda a, s: a * s, [(x, math.nan)] * 3),
        "negative bit": (lambda a: a * 2.0, [(imaginary.imag,), (imaginary.conj().imag,), (imaginary.imag,)]),
        "literals": (lambda a: a * torch.tensor([1.0, 2.0, 3.0, 4.0]), [(x,), (x,)]),
        "an array's memory": (lambda a: a * torch.from_numpy(ARRAY), [(x,), (x,)]),
        "NumPy's": (_by_its_number, [(x, 0), (x, 1), (x, 0), (x, 2)]),
        "hidden": (lambda a: a * globals()["".join(("HID", "DEN"))], [(x,), (x,)]),
    }
    found = {}
    with torch.no_grad():
        for name, (function, calls) in pairs.items():
            call = engine.compile(function)
            with heard() as said:
                results = [call(*args) for args in calls]
            right = all(_same_bits(result, function(*args)) for result, args in zip(results, calls, strict=True))
            found[name] = {"right": right, "builds": call.call.builds, "said": said}
    return found


NUMBERS = (np.int64(-2), np.float32(3.0), np.bool_(True))


def _by_its_number(a: torch.Tensor, which: int) -> torch.Tensor:
    """Times a number of NumPy's that it reaches."""
    return a * NUMBERS[which]


def in_python() -> dict[str, Any]:
    """Numbers that code makes of a tensor it holds, and what it asks of its arguments: right before a change and after
    it, and what was said."""
    x, held, whole = torch.randn(4, 4), torch.tensor(2.0), torch.tensor(1)
    again = x.clone()
    module = torch.nn.Module()
    module.register_buffer("scale", held)
    functions: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
        "item": (lambda a: a * held.item(), [(x,)]),
        "float": (lambda a: a * float(held * 2.0), [(x,)]),
        "tolist": (lambda a: a * held.tolist(), [(x,)]),
        "alpha": (lambda a: torch.add(a, a, alpha=held), [(x,)]),
        "full": (lambda a: a + torch.full((4,), held), [(x,)]),
        "a list": (lambda a: a * torch.tensor([held, 1.0, 1.0, 1.0]), [(x,)]),
        "dim": (lambda a: a.sum(dim=whole), [(x,)]),
        "a slice": (lambda a: a[:whole] * 2.0, [(x,)]),
        "a buffer": (lambda a: a * module.scale.item(), [(x,)]),
        "one tensor twice": (lambda a, b: a * 2.0 if a is b else a * 3.0, [(x, x), (x, again), (x, x)]),
        "a tensor it holds": (lambda a: a * 2.0 if a is again else a * 3.0, [(x,), (again,)]),
        "keys": (lambda a: [v * k for k, v in a.items()], [({1: whole},), ({1.0: whole},), ({True: whole},)]),
        "a parameter": (
            lambda a: a * 2.0 if isinstance(a, torch.nn.Parameter) else a * 3.0,
            [(x,), (torch.nn.Parameter(x, requires_grad=False),)],
        ),
        "a view": (lambda a: a * 2.0 if a._base is None else a * 3.0, [(x,), (x[:2],)]),
        "floor": (lambda a: a // 0.1, [(torch.tensor([0.7, 0.3, -0.3]),), (torch.tensor([math.inf, 1e10, -1e-9]),)]),
    }
    found = {}
    for name, (function, calls) in functions.items():
        held.fill_(2.0)
        whole.fill_(1)
        with torch.no_grad(), heard() as said:
            call = engine.compile(function)
            right = [_same(call(*args), function(*args)) for args in calls]
            held.fill_(3.0)
            whole.fill_(0)
            right += [_same(call(*args), function(*args)) for args in calls]
        found[name] = {"right": right, "said": said}
    return found


def modes() -> dict[str, Any]:
    """Functions that ask for gradients or inference, or want them: whether they are right, and what is raised."""
    x, weight = torch.randn(4, 4), torch.ones(4, requires_grad=True)
    asks = engine.compile(lambda a: a * 2.0 if torch.is_grad_enabled() else a * 3.0)
    infers = engine.compile(lambda a: a * 2.0 if torch.is_inference_mode_enabled() else a * 3.0)

    def enabling(a: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            return a * weight

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        right = [torch.equal(asks(x), x * 2.0)]
        with torch.no_grad():
            right += [torch.allclose(asks(x), x * 3.0), torch.allclose(infers(x), x * 3.0)]
            right.append(engine.compile(enabling)(x).requires_grad)
        with torch.inference_mode():
            right.append(torch.equal(infers(x), x * 2.0))
    try:
        engine.compile(lambda a: a * torch.ones(4, requires_grad=True))(x)
    except TrainingError as error:
        return {"right": right, "raised": str(error)}
    return {"right": right, "raised": ""}


def _same(a: Any, b: Any) -> bool:
    pairs = list(zip(a, b, strict=True)) if isinstance(a, list) else [(a, b)]
    return all(
        p.dtype == q.dtype and p.shape == q.shape and torch.allclose(p, q, rtol=1e-5, equal_nan=True) for p, q in pairs
    )


def training() -> str:
    """What a function says that reads a weight which wants gradients."""
    weight = torch.randn(4, 4, requires_grad=True)
    try:
        engine.compile(lambda a: a * weight)(torch.randn(4, 4))
    except TrainingError as error:
        return str(error)
    return ""


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.signbit() | a.isnan(), b.signbit() | b.isnan())


if __name__ == "__main__":
    changes = {"everyday": everyday, "rest": rest}[sys.argv[1]]
    found: dict[str, Any] = {"ways": {name: followed(way, changes(name)) for name, way in WAYS.items()}}
    torch.export.ExportedProgram.run_decompositions = DECOMPOSING
    list_composites_once()
    if changes is everyday:
        found |= {"values": values(), "training": training(), "in Python": in_python(), "modes": modes()}
    print(json.dumps(found))
