"""Where the two lines of programmatic dependent launch stand, in every kind of text that is generated."""

from __future__ import annotations

import re

import pytest

from engine.codegen import KernelSource, render, with_dependent_launch
from engine.codegen.dependent_launch import LAUNCH_DEPENDENTS, WAIT
from tests.codegen.test_golden import cases

TOUCHES = re.compile(r"\btl\.load\(|\.load\(\[|\btl\.store\(")


def lines_of(name: str) -> list[str]:
    kernel, schedule = cases()[name]
    return render(kernel, schedule, pdl=True).text.split("\n")


def place(lines: list[str], text: str) -> int:
    return next(i for i, line in enumerate(lines) if line.strip() == text)


@pytest.mark.parametrize("name", [name for name in cases() if not name.startswith("attention_overlap")])
def test_nothing_is_touched_before_the_wait_and_nothing_else_changes(name: str) -> None:
    kernel, schedule = cases()[name]
    plain = render(kernel, schedule)
    lines = lines_of(name)
    wait = place(lines, WAIT)
    assert place(lines, LAUNCH_DEPENDENTS) > wait
    function = max(i for i, line in enumerate(lines[:wait]) if line.startswith("def "))
    assert not any(TOUCHES.search(line) for line in lines[function:wait])
    assert any(TOUCHES.search(line) for line in lines[wait:])
    assert lines[wait].index(WAIT) == 4  # of the function itself: every program gets there
    rest = [line for line in lines if line.strip() not in (WAIT, LAUNCH_DEPENDENTS)]
    assert "\n".join(rest) == plain.text
    assert not plain.pdl


def test_dependents_start_behind_the_main_loop() -> None:
    lines = lines_of("matmul_pointers")
    start = place(lines, LAUNCH_DEPENDENTS)
    assert "tl.dot" in lines[start - 1]
    assert not any("tl.dot" in line for line in lines[start:])
    assert any("tl.store" in line for line in lines[start:])


def test_products_side_by_side_wait_once_and_let_dependents_start_before_any_of_them_ends() -> None:
    lines = lines_of("projections_side_by_side")
    entry = next(i for i, line in enumerate(lines) if line.startswith("def contraction("))
    assert place(lines, WAIT) > entry
    assert [line.strip() for line in lines].count(WAIT) == 1
    start = place(lines, LAUNCH_DEPENDENTS)
    assert "tl.dot" in lines[start - 1]
    assert lines[start + 1].strip().startswith("if tl.program_id(0) <")


def test_a_kernel_without_a_loop_lets_them_start_before_it_stores() -> None:
    lines = lines_of("pointwise_layouts")
    start = place(lines, LAUNCH_DEPENDENTS)
    assert "tl.store" in lines[start + 1]


def test_a_persistent_kernel_lets_them_start_at_its_end() -> None:
    lines = lines_of("matmul_persistent_descriptors")
    assert [line.strip() for line in lines if line][-1] == LAUNCH_DEPENDENTS
    assert lines[place(lines, WAIT) + 1].lstrip().startswith("for tile in")


def test_the_columns_of_a_looped_row_are_read_before_dependents_start() -> None:
    lines = lines_of("softmax_looped")
    start = place(lines, LAUNCH_DEPENDENTS)
    assert any("acc" in line and "for" not in line for line in lines[:start])
    assert any("tl.store" in line for line in lines[start:])


def test_text_that_touches_no_memory_waits_all_the_same() -> None:
    text = "import triton\n\n\n@triton.jit\ndef nothing(out0):\n    x = (\n        1\n    )\n"
    source = with_dependent_launch(KernelSource(text, "nothing", (), (1, 1, 1), 1, 1))
    assert source.text.split("\n")[5].strip() == WAIT
    assert source.text.rstrip().endswith(LAUNCH_DEPENDENTS)
    assert source.pdl


def test_a_source_that_waits_is_another_source() -> None:
    kernel, schedule = cases()["rms_norm_persistent"]
    plain, waiting = render(kernel, schedule), render(kernel, schedule, pdl=True)
    assert plain.fingerprint != waiting.fingerprint
    assert KernelSource.from_json(waiting.to_json()) == waiting
