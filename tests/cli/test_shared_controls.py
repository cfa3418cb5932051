"""One controls file for several shapes: the best for all together, none that fails on one of them."""

from __future__ import annotations

import pytest

from engine.cli.eval_acf_rows import ControlsReport, ControlsRow
from engine.cli.shared_controls import shared_controls, shared_sentence


def row(name: str, ratio: float | None, failed: int = 0, verdict: str = "") -> ControlsRow:
    sha256 = name * 64 if name else ""
    us = None if ratio is None else 10.0 / ratio
    return ControlsRow(sha256, name or "none", us, "deploy", ratio, 32, 0, 3, failed, False, verdict)


def report(shape: str, *rows: ControlsRow, label: str = "softmax", gpu: str = "H200") -> ControlsReport:
    return ControlsReport(f"key of {shape}", label, shape, gpu, "13.3.73", "", (row("", 1.0), *rows))


def test_the_one_that_helps_all_together_is_named() -> None:
    wide = report("wide", row("a", 1.2), row("b", 1.05, verdict="faster"), row("c", 1.5, failed=1))
    tall = report("tall", row("a", 0.8), row("b", 1.05), row("c", 1.5))
    (found,) = shared_controls([wide, tall])
    assert found.name == "b"
    assert found.ratio == pytest.approx(1.05)
    assert found.shapes == (("wide", 1.05), ("tall", 1.05))
    assert shared_sentence(found) == (
        "one file for all 2 shapes of softmax: b, 1.050x the best without (wide 1.050x, tall 1.050x); "
        "confirmed as a win in 1 of them"
    )


def test_kernels_chips_and_single_shapes_are_not_mixed() -> None:
    helped = row("a", 1.2)
    assert shared_controls([report("one", helped)]) == []
    assert shared_controls([report("one", helped), report("two", helped, label="norm")]) == []
    assert shared_controls([report("one", helped), report("two", helped, gpu="B200")]) == []


def test_without_a_common_file_there_is_none() -> None:
    assert shared_controls([report("one", row("a", 1.2)), report("two", row("b", 1.2))]) == []
    assert shared_controls([report("one", row("a", 1.2)), report("two", row("a", None, failed=3))]) == []
