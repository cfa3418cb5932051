"""A text is every kernel's of its key: it holds nothing of where in its buffer an input lies but the alignment."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice

import pytest

from engine.codegen import offered_schedules, render
from engine.ir import Graph, Kernel
from engine.ir.placement import ALIGNMENT_BYTES
from engine.ir.views import storage_roots
from engine.vocabulary import Target
from tests.codegen.bodies import BODIES


def elsewhere(body: Graph, draw: random.Random) -> Graph:
    """The body with each input, and the views of it, some 16-byte steps further on in its buffer."""
    steps = {i: draw.randint(1, 2**20) * (ALIGNMENT_BYTES // body.ops[i].out.element_bytes) for i in body.inputs}
    ops = [
        replace(op, out=replace(op.out, offset=op.out.offset + steps[root])) if root in steps else op
        for op, root in zip(body.ops, storage_roots(body), strict=True)
    ]
    return replace(body, ops=tuple(ops))


@pytest.mark.parametrize("family", list(BODIES))
def test_equal_kernels_have_one_text_wherever_their_inputs_lie(family: str) -> None:
    target = Target(multiprocessors=3)
    compared = 0
    for name, made in BODIES[family].items():
        here = made()
        draw = random.Random(name)
        kernel, other = Kernel(family, here), Kernel(family, elsewhere(here, draw))
        assert kernel.key == other.key, name
        schedules = list(islice(offered_schedules(kernel, target), 400))
        assert schedules == list(islice(offered_schedules(other, target), 400)), name
        descriptors = [schedule for schedule in schedules if schedule.as_dict().get("LOADS") == "descriptor"]
        for schedule in (*draw.sample(schedules, 1), *draw.sample(descriptors, min(1, len(descriptors)))):
            assert render(kernel, schedule, target) == render(other, schedule, target), (name, schedule)
            compared += 1
    assert compared >= len(BODIES[family])
