"""ptxas controls on the screens: a file by its name, and a run with what proved them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from emmy_tui.comparison import Choice, read_comparison
from emmy_tui.text import UNICODE
from emmy_tui.variant_detail import detail_lines, read_detail
from emmy_tui.widgets.compare_list import side_text
from engine.events import ControlsChecked
from engine.store import Store
from tests.deploy.controlled_samples import SHA, SLOWER, tools, tuned_with_controls
from tests.emmy_tui.two_runs import record_runs


def test_a_variant_names_its_file(tmp_path: Path) -> None:
    with Store.open(tmp_path / "t.db") as store:
        tuned_with_controls(store, tools(tmp_path / "tools"))
        found = store.candidate_rows(range(1, 20)).values()
        rows = {str(row.schedule.get("ACF")): row for row in found}
        assert read_detail(rows[SHA])(store).controls == f"one ({SHA[:8]})"
        assert read_detail(rows[""])(store).controls == ""
        lines = detail_lines(read_detail(rows[SHA])(store), 100, UNICODE)
        strange = replace(rows[SHA], schedule={**rows[SHA].schedule, "ACF": "ab" * 32})
        assert read_detail(strange)(store).controls == "abababab"
    assert any(f"one ({SHA[:8]})" in "".join(text for text, _ in line) for line in lines)
    assert SLOWER.decode() not in "".join(text for line in lines for text, _ in line if "one (" in text)


GREEN = ControlsChecked(
    at=1.0,
    on=True,
    reason="",
    ptxas="13.3.73+ab",
    given=3,
    offered=2,
    changing=2,
    slowdown=3.016,
    control_ratio=1.0012,
)


@pytest.mark.parametrize(
    ("checked", "words"),
    [
        (GREEN, "controls joint: 2 files, without optimization 3.02x, against itself 1.001x"),
        (replace(GREEN, on=False, reason="it could not be timed"), "controls off: it could not be timed"),
    ],
    ids=["green", "red"],
)
def test_a_compared_run_says_what_proved_them(tmp_path: Path, checked: ControlsChecked, words: str) -> None:
    path = record_runs(tmp_path / "t.db")
    with Store.open(path) as store:
        newest = store.runs()[-1].id
        store.record_events(newest, [checked])
        found = read_comparison(Choice())(store)
    assert found.a.run.id == newest
    assert side_text(found.a, UNICODE, 200).endswith(words)
    assert "controls" not in side_text(found.b, UNICODE, 200)
