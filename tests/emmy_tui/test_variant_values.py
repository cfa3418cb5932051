"""What is typed and what is compared on the Variants tab means what the table shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from emmy_tui import format as fmt
from emmy_tui.widgets.variant_list import Columns
from tests.emmy_tui.looking import running, screen_text
from tests.emmy_tui.measured import fill, over, press, settled

WIDE = (160, 45)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return fill(tmp_path / "tune.db")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NUM_WARPS=banana", "No row here has NUM_WARPS=banana: there is"),
        ("us<1000 NUM_WARPS=3", "No row here has NUM_WARPS=3: there is"),
        ("NUM_WARPS>900", "No row here has NUM_WARPS>900: there is"),
        ("EVICTION=evict_first", "No row here has the knob EVICTION; esc shows all"),
        ("us<1", "No row passes the filter; esc takes it away"),
    ],
)
async def test_a_value_that_no_knob_has_is_said(database: Path, text: str, words: str) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2")
        app.variants.set_filter(text)
        await settled(app, pilot)
        assert app.variants.list.count() == 0
        assert words in screen_text(app)


async def test_the_shown_time_is_found_by_its_digits(database: Path) -> None:
    """A time is compared as it is shown, whichever comparison it stands in."""
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2")
        first = app.variants.list.current_row()
        assert first is not None
        shown = fmt.us(first.us if first.deploy_us is None else first.deploy_us)
        counts = {}
        for compared in ("=", "<=", "<"):
            app.variants.set_filter(f"us{compared}{shown}")
            await settled(app, pilot)
            counts[compared] = app.variants.list.count()
        assert counts == {"=": 1, "<=": 1, "<": 0}


async def test_two_variants_are_compared_by_the_times_of_the_table(database: Path) -> None:
    app = over(database)
    async with running(app, WIDE) as pilot:
        await press(app, pilot, "2", "b")
        first = app.variants.list.current_row()
        assert first is not None
        assert first.deploy_us is not None
        await press(app, pilot, "j", "b")
        text = " ".join(screen_text(app).split())
        assert f"│ us {fmt.us(first.deploy_us)} " in text
        assert "│ by deploy " in text
        assert f"│ ranking us {fmt.us(first.us)} " in text


def test_a_row_is_numbered_in_full_however_many_there_are() -> None:
    assert Columns.of(78, False, rows=299_999).number == 6
    assert Columns.of(78, False, rows=60).number == 4
