"""Kernels that load through descriptors, over strides of their operands' batches, in Triton's interpreter.

What a kernel reads beside its operands is another number or outside of the storage, so a wrong row shows.

Triton decides at import whether it interprets, so this is a program: `python -m tests.codegen.batch_strides CASE`.
It prints how many schedules it ran, of each kind of text, and fails with the smallest kernel that is wrong.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter

os.environ["TRITON_INTERPRET"] = "1"

import torch
from hypothesis import HealthCheck, Phase, given, settings

from engine.codegen import GLUON, illegal_because, offered_schedules, render
from engine.ir import Graph, Kernel
from engine.runtime.inputs import make_inputs
from engine.runtime.interpret import interpret
from engine.runtime.reference import evaluate
from engine.vocabulary import KnobValue, Schedule, Target
from tests.codegen.batch_bodies import attentions, long_attentions, products

torch.set_num_threads(1)
SMALL_CHIP = Target(multiprocessors=3)
EXAMPLES = {"contraction": 50, "attention": 24, "overlap": 8}
_CLOSE = {"float32": 1e-5, "bfloat16": 1e-2}
_CHANGES: tuple[dict[str, KnobValue], ...] = (
    {},
    {"PERSISTENT": True},
    {"BLOCK_M": 16, "STORES": "whole"},
    {"BLOCK_M": 16, "BLOCK_N": 16, "STORES": "halves", "PERSISTENT": True},
)
_ROLES: dict[str, KnobValue] = {"BLOCK_M": 128, "BLOCK_N": 64, "NUM_WARPS": 8, "NUM_STAGES": 2, "OVERLAP": "persistent"}
_BOUNDED = settings(
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)


def described(kernel: Kernel) -> list[Schedule]:
    """Of the offered schedules with descriptors one by chance, and its other forms of text that are legal."""
    found = [s for s in offered_schedules(kernel, SMALL_CHIP) if s.as_dict()["LOADS"] == "descriptor"]
    if not found:
        return []
    chosen = random.Random(kernel.key).choice(found)
    changes = _CHANGES if kernel.family == "contraction" else ({}, _ROLES)
    forms = dict.fromkeys(Schedule.of(chosen.as_dict() | change) for change in changes)
    return [one for one in forms if illegal_because(kernel, one, SMALL_CHIP) is None]


def check(kernel: Kernel, ran: Counter[str]) -> None:
    """Assert that every text gives what float64 does."""
    for schedule in described(kernel):
        source = render(kernel, schedule, SMALL_CHIP)
        inputs = make_inputs(kernel.body.input_specs(), 7, "cpu")
        (found,) = interpret(source, inputs, kernel.body.output_specs())
        (wanted,) = evaluate(kernel.body, inputs)
        error = float((found.double() - wanted).norm() / wanted.norm())
        assert error < _CLOSE[kernel.body.output_specs()[0].dtype], (
            f"{schedule} is off by {error:.1e}: {kernel.body.input_specs()}"
        )
        ran["schedules"] += 1
        ran["with a divisor"] += "batch // " in source.text
        ran["with a remainder"] += "batch % " in source.text
        ran["stored"] += "out0_desc" in source.text
        ran["with roles"] += source.dialect == GLUON


def main(case: str) -> None:
    ran: Counter[str] = Counter()
    bodies = {"contraction": products(), "attention": attentions(), "overlap": long_attentions()}[case]
    family = "contraction" if case == "contraction" else "attention"

    @settings(_BOUNDED, max_examples=EXAMPLES[case])
    @given(bodies)
    def drawn(body: Graph) -> None:
        check(Kernel(family, body), ran)

    drawn()
    print(json.dumps(ran))


if __name__ == "__main__":
    main(sys.argv[1])
