"""The ACF knob: on every generated kernel and on no other, a name and no text, and absent where nobody searches it."""

from __future__ import annotations

import json

import pytest

from engine.codegen import KernelSource, acf_of, illegal_because, offered_schedules, render
from engine.ir import GraphBuilder, TensorSpec
from engine.ir.kernel import Kernel
from engine.vocabulary import Schedule, Target

ACF = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    builder = GraphBuilder()
    side = TensorSpec.contiguous((256, 256), "bfloat16")
    return Kernel("contraction", builder.build(builder.add("matmul", builder.input(side), builder.input(side))))


def schedule_with(kernel: Kernel, acf: object) -> Schedule:
    return Schedule.of({**next(offered_schedules(kernel, Target())).as_dict(), "ACF": acf})  # type: ignore[dict-item]


def test_spaces_and_keys_are_without_it(kernel: Kernel) -> None:
    schedule = next(offered_schedules(kernel, Target()))
    assert "ACF" not in schedule.as_dict()
    assert acf_of(schedule) == ""
    assert "acf" not in json.loads(render(kernel, schedule).to_json())


@pytest.mark.parametrize("acf", ["", ACF])
def test_a_sha256_or_nothing_is_legal(kernel: Kernel, acf: str) -> None:
    schedule = schedule_with(kernel, acf)
    assert illegal_because(kernel, schedule, Target()) is None
    assert acf_of(schedule) == acf


@pytest.mark.parametrize("acf", ["x.acf", ACF[:-1], ACF.upper(), "../" + ACF, 7, True])
def test_anything_else_is_refused(kernel: Kernel, acf: object) -> None:
    reason = illegal_because(kernel, schedule_with(kernel, acf), Target())
    assert reason is not None
    assert "ACF is the sha256 of a controls file" in reason


def test_a_librarys_call_has_no_controls() -> None:
    builder = GraphBuilder()
    side = TensorSpec.contiguous((8, 8), "bfloat16")
    body = builder.build(builder.add("relu", builder.input(side)))
    reason = illegal_because(Kernel("extern", body), Schedule.of({"ACF": ACF}), Target())
    assert reason is not None
    assert "ACF is no knob of a extern kernel" in reason


def test_controls_travel_with_the_source_and_change_no_text(kernel: Kernel) -> None:
    plain, controlled = (render(kernel, schedule_with(kernel, acf)) for acf in ("", ACF))
    assert plain == render(kernel, next(offered_schedules(kernel, Target())))
    assert plain.text == controlled.text
    assert plain.fingerprint != controlled.fingerprint
    assert KernelSource.from_json(controlled.to_json()) == controlled
    assert KernelSource.from_json(plain.to_json()) == plain
