"""The stand-in for Gluon: it computes what the text says, and shows what would go wrong on a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.codegen import KernelSource, render
from engine.ir import Kernel
from engine.runtime.inputs import make_inputs
from engine.runtime.interpret_gluon import Deadlock, run_gluon
from engine.runtime.launch import kernel_argument
from engine.runtime.reference import evaluate
from engine.vocabulary import Target
from tests.codegen.attention_bodies import attention
from tests.codegen.test_golden import attention_roles

KERNEL = Kernel("attention", attention(2, 256, 384, 64, "bfloat16", causal=True, offset=128))
SCHEDULE = attention_roles(MASK="cut", OVERLAP="persistent")
SOURCE = render(KERNEL, SCHEDULE, Target(multiprocessors=2))


def ran(source: KernelSource) -> tuple[torch.Tensor, torch.Tensor]:
    """What the source gives, and what it should."""
    inputs = make_inputs(KERNEL.body.input_specs(), 3, "cpu")
    (spec,) = KERNEL.body.output_specs()
    output = torch.full(spec.shape, float("nan"), dtype=torch.bfloat16)
    run_gluon(source, [kernel_argument(argument, inputs, [output]) for argument in source.arguments])
    return output.double(), evaluate(KERNEL.body, inputs)[0]


def changed(old: str, new: str, count: int = -1) -> KernelSource:
    assert old in SOURCE.text
    return replace(SOURCE, text=SOURCE.text.replace(old, new, count))


def test_the_text_computes_what_it_says() -> None:
    output, expected = ran(SOURCE)
    assert (output - expected).norm() < 1e-2 * expected.norm()


def test_a_buffer_that_is_overwritten_too_early_shows() -> None:
    """Values are given back before the product that reads them was waited for."""
    wait = "acc, weights = hopper.warpgroup_mma_wait(0, (flying, weights))"
    give = "hopper.mbarrier.arrive(values_free.index(count % 2), count=1)"
    pad = "\n            "
    source = changed(f"{wait}{pad}gl.thread_barrier(){pad}{give}", f"{give}{pad}{wait}")
    output, _ = ran(source)
    assert output.isnan().any()


def test_reading_what_has_not_arrived_shows() -> None:
    wait = "hopper.mbarrier.wait(queries_full.index(group), turn & 1)"
    output, _ = ran(changed(wait, "pass"))
    assert output.isnan().any()


def test_roles_that_wait_for_each_other_end() -> None:
    with pytest.raises(Deadlock, match="wait for each other"):
        ran(changed("hopper.mbarrier.arrive(keys_free.index((count + 1) % 2), count=1)", "pass"))


def test_too_many_arrivals_are_told() -> None:
    with pytest.raises((RuntimeError, Deadlock)):
        ran(
            changed(
                "hopper.mbarrier.init(keys_free.index(i), count=2)", "hopper.mbarrier.init(keys_free.index(i), count=1)"
            )
        )


def test_a_block_outside_of_its_matrix_is_told() -> None:
    with pytest.raises(IndexError, match="a block of 64 x 64"):
        ran(changed("query_row + first + 64", "query_row + first + 64000"))
