"""Activations for results of 16 bits in Triton's interpreter, over every number of both dtypes, as JSON lines.

Triton decides at import whether it interprets, so this is a program: `python -m tests.codegen.half_numerics`.
Each line counts results that aren't the float64 function's rounded once, and how far the farthest is, in places.
"""

from __future__ import annotations

import json
import math
import os

os.environ["TRITON_INTERPRET"] = "1"

import torch
import torch.nn.functional as F

from engine.codegen import render
from engine.ir import Kernel
from engine.runtime.interpret import interpret
from engine.vocabulary import Schedule
from tests.codegen.half_truth import TRUE, activation, every_number, least_clear, places

EAGER = {
    "gelu": lambda x: x * 0.5 * (1 + torch.erf(x * math.sqrt(0.5))),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "gelu_tanh": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))),
}
"""What torch's CUDA kernels compute in float32 before they round."""


def check(kind: str, dtype: str) -> dict[str, object]:
    numbers, graph = every_number(dtype), activation(kind, dtype)
    schedule = Schedule.of({"BLOCK": 8192, "NUM_WARPS": 8, "EVICTION": ""})
    source = render(Kernel("pointwise", graph), schedule)
    (found,) = interpret(source, [numbers], graph.output_specs())
    exact = TRUE[kind](numbers.double())
    wanted, eager = exact.to(found.dtype), EAGER[kind](numbers.float()).to(found.dtype)
    held = wanted.isfinite() & numbers.isfinite()
    clear = held & (exact.abs() >= least_clear(kind))
    off, eager_off = (places(found) - places(wanted)).abs(), (places(eager) - places(wanted)).abs()
    return {
        "kind": kind,
        "dtype": dtype,
        "calls": f"{kind}_to_half(" in source.text,
        "wrong": int((off[held] > 0).sum()),
        "eager_wrong": int((eager_off[held] > 0).sum()),
        "farthest": int(off[clear].max()),
        "beyond": float((found.double() - exact)[held & ~clear].abs().max()),
        "too_far_from_eager": int((off > torch.clamp(eager_off, min=1))[held].sum()),
        "same_nan": torch.equal(found.isnan(), wanted.isnan()),
        "same_infinities": torch.equal(found[wanted.isinf()], wanted[wanted.isinf()]),
        "same_signs": torch.equal(found.signbit()[~wanted.isnan()], wanted.signbit()[~wanted.isnan()]),
    }


if __name__ == "__main__":
    for kind in TRUE:
        for dtype in ("bfloat16", "float16"):
            print(json.dumps(check(kind, dtype)), flush=True)
