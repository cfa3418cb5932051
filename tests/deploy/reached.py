"""Tensors that are reached and changed in every way, in Triton's interpreter: a program, since Triton decides at import
whether it interprets.

`python -m tests.deploy.reached` prints one JSON object: for each way and change whether the compiled call gives what
eager gives, and how many signatures run by kernels.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch

import engine
from engine.deploy.backend import TrainingError
from tests.deploy.ways import WAYS, followed

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
        "hidden": (lambda a: a * globals()["".join(("HID", "DEN"))], [(x,), (x,)]),
    }
    found = {}
    with torch.no_grad():
        for name, (function, calls) in pairs.items():
            call = engine.compile(function)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                results = [call(*args) for args in calls]
            sentences = [str(one.message) for one in said if "emmy" in str(one.message)]
            right = all(_same_bits(result, function(*args)) for result, args in zip(results, calls, strict=True))
            found[name] = {"right": right, "builds": call.call.builds, "said": sentences}
    return found


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
    ways = {name: followed(way) for name, way in WAYS.items()}
    torch.export.ExportedProgram.run_decompositions = DECOMPOSING
    print(json.dumps({"ways": ways, "values": values(), "training": training()}))
