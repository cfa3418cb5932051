"""Runs one family's bodies in Triton's interpreter and prints what went wrong, as JSON lines.

Triton decides at import whether it interprets, so this is a program: `python -m tests.codegen.interpreted FAMILY`.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from itertools import islice

os.environ["TRITON_INTERPRET"] = "1"

import torch

from engine.codegen import illegal_because, offered_schedules, render
from engine.codegen.contraction_facts import contraction_facts
from engine.ir import Kernel
from engine.runtime.inputs import Draw, make_inputs
from engine.runtime.interpret import interpret
from engine.runtime.reference import evaluate
from engine.vocabulary import KnobValue, Schedule, Target
from tests.codegen.bodies import BODIES
from tests.codegen.half_bodies import HALVES

torch.set_num_threads(1)
SMALL_CHIP = Target(multiprocessors=3)
"""Few multiprocessors, so that small shapes have persistent schedules."""
SCHEDULES_OF_A_BODY = {"contraction": 4, "attention": 2, "rowwise": 4, "pointwise": 4}
_ROLES: dict[str, KnobValue] = {"BLOCK_M": 128, "LOADS": "descriptor", "NUM_WARPS": 8, "NUM_STAGES": 2}
_OVERLAPS, _MASKS = ("specialized", "persistent"), ("every", "cut")
_FORMS_OF_ATTENTION: tuple[dict[str, KnobValue], ...] = (
    {"MASK": "cut"},
    {"BLOCK_M": 32, "BLOCK_N": 16, "QUERY_TILES": 2},
    *({**_ROLES, "BLOCK_N": 128, "OVERLAP": overlap, "MASK": mask} for overlap in _OVERLAPS for mask in _MASKS),
    *({**_ROLES, "BLOCK_N": 64, "NUM_STAGES": 3, "OVERLAP": "persistent", "MASK": mask} for mask in _MASKS),
)
"""They pay from long sequences on, and are right wherever they are legal."""
_FORMS_OF_CONTRACTION: tuple[dict[str, KnobValue], ...] = (
    {"STORES": "whole"},
    {"STORES": "quarters", "BLOCK_N": 64, "PERSISTENT": True},
)
"""They pay where tiles are large and many."""
_FORMS = {"attention": _FORMS_OF_ATTENTION, "contraction": _FORMS_OF_CONTRACTION}
_TRIES = 12
ROUNDING = {"float64": 1e-12, "float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-3}
"""Allowed relative norm beside eager's own error."""


def main(family: str) -> None:
    for name, body in BODIES[family].items():
        kernel = Kernel(family, body())
        schedules = sample(kernel, name)
        for schedule, draw in zip(schedules, draws(), strict=False):
            for problem in problems(kernel, schedule, draw):
                print(json.dumps({"body": name, "schedule": str(schedule), "draw": draw, "problem": problem}))
        print(json.dumps({"body": name, "checked": len(schedules)}), flush=True)


def sample(kernel: Kernel, name: str) -> list[Schedule]:
    """Some schedules by chance, and of each other form of the text, which few schedules have, one or two more."""
    offered = list(offered_schedules(kernel, SMALL_CHIP))
    if name in HALVES:
        offered = [schedule for schedule in offered if _of_one_group(schedule, kernel)]
    draw = random.Random(name)
    found = draw.sample(offered, min(SCHEDULES_OF_A_BODY[kernel.family], len(offered)))
    other = [schedule for schedule in offered if _without_dot(schedule) and schedule not in found]
    found += draw.sample(other, min(2, len(other)))
    for changes in _FORMS.get(kernel.family, ()):
        changed = (Schedule.of(s.as_dict() | changes) for s in draw.sample(offered, min(_TRIES, len(offered))))
        found += islice((s for s in changed if illegal_because(kernel, s, SMALL_CHIP) is None), 1)
    return found


def _of_one_group(schedule: Schedule, kernel: Kernel) -> bool:
    return int(schedule.as_dict()["BLOCK_N"]) == contraction_facts(kernel.body).group


def _without_dot(schedule: Schedule) -> bool:
    return 0 < int(schedule.as_dict().get("BLOCK_M", 0)) < 16


def draws() -> Iterator[Draw]:
    """Mostly modest numbers; signed zeros once."""
    yield Draw.MODEST
    yield Draw.SIGNED_ZEROS
    while True:
        yield Draw.MODEST


def problems(kernel: Kernel, schedule: Schedule, draw: Draw) -> Iterator[str]:
    inputs = make_inputs(kernel.body.input_specs(), 7, "cpu", draw)
    try:
        outputs = interpret(render(kernel, schedule, SMALL_CHIP), inputs, kernel.body.output_specs())
    except Exception as error:
        yield f"{type(error).__name__}: {error}"
        return
    references = evaluate(kernel.body, inputs)
    eager = evaluate(kernel.body, inputs, dtype=None)
    for position, (output, reference, rounded) in enumerate(zip(outputs, references, eager, strict=True)):
        if not output.dtype.is_floating_point:
            if not torch.equal(output, rounded):
                yield f"output {position} differs from eager's in {int((output != rounded).sum())} elements"
            continue
        finite = reference.isfinite()
        wide = output.double()
        same_nan = torch.equal(wide.isnan(), reference.isnan())
        if not same_nan or not torch.equal(wide[reference.isinf()], reference[reference.isinf()]):
            yield f"output {position} has NaN or infinity elsewhere"
        scale = float(reference[finite].norm()) or 1.0
        error = float((wide - reference)[finite].norm()) / scale
        eager_error = float((rounded.double() - reference)[finite].norm()) / scale
        allowed = 2 * eager_error + ROUNDING[str(output.dtype).removeprefix("torch.")]
        if not error <= allowed:
            yield f"output {position} is off by {error:.2e}, allowed {allowed:.2e}"


if __name__ == "__main__":
    main(sys.argv[1])
