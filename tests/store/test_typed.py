"""A record of a row is what its fields promise, or a ValueError says which isn't."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.events import Compared, Measured, NodeOpened
from engine.store.typed import checked
from engine.vocabulary import BuildReport, Target

MEASURED = Measured(
    at=1.0, kernel="k", node="n", schedule="A=1", regime="ranking", status="ok", trial=1, us=2, best=True
)
COMPARED = Compared(
    at=1.0,
    kernel="k",
    schedules=("a", "b"),
    ratios=(1.0,),
    lows=(0.9,),
    highs=(1.1,),
    p_values=(0.5,),
    effects=(0.0,),
    verdicts=("within noise",),
    processes=1,
    noise_share=0.01,
    chosen="a",
)


@pytest.mark.parametrize("record", [MEASURED, COMPARED, BuildReport(), Target()])
def test_what_fits_is_the_same(record: object) -> None:
    assert checked(record) is record


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (replace(MEASURED, us="2"), "us"),
        (replace(MEASURED, trial=1.5), "trial"),
        (replace(MEASURED, trial=True), "trial"),
        (replace(MEASURED, kernel=None), "kernel"),
        (replace(MEASURED, best=1), "best"),
        (replace(COMPARED, ratios=("1",)), "ratios"),
        (replace(COMPARED, ratios=[1.0]), "ratios"),
        (BuildReport(registers=[]), "registers"),
        (NodeOpened(at=1.0, node="n", parent="", kernel="k", label="", prior=1.0, depth="deep"), "depth"),
    ],
)
def test_what_does_not_fit_is_named(record: object, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} is "):
        checked(record)
