"""Text of a database that would act on a terminal, on markup or on widths is shown for what it is, and does nothing."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from emmy_tui.app import EmmyApp
from emmy_tui.database_source import DatabaseSource
from emmy_tui.text import clean
from tests.cli.hostile import TEXTS, fill, with_knobs, with_text
from tests.emmy_tui.looking import application, running, strips
from tests.emmy_tui.measured import settled
from tests.emmy_tui.test_leaving import soon

SIZE = (160, 45)
TABS = "123456"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("hostile") / "base.db")


def painted(app: EmmyApp) -> str:
    """What is on the screen, where each line is as wide as the screen and nothing acts on the terminal."""
    lines = strips(app)
    assert len(lines) == SIZE[1]
    for line in lines:
        assert line.cell_length == SIZE[0], line.text
        assert not [one for one in line.text if unicodedata.category(one) in ("Cc", "Cf", "Cs")], line.text
    return "\n".join(line.text for line in lines)


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize(("put", "telling"), [(with_text, "1236"), (with_knobs, "26")])
async def test_text_is_shown_and_does_nothing(
    base: Path, tmp_path: Path, put: Callable[[Path, str], None], telling: str, kind: str
) -> None:
    """On all tabs; `telling` are those that show some of the text in any case."""
    path, text = Path(shutil.copy(base, tmp_path / "e.db")), TEXTS[kind]
    put(path, text)
    app = application(DatabaseSource(path))
    begins = clean(text)[:5].strip()
    async with running(app, SIZE) as pilot:
        for tab in TABS:
            await pilot.press(tab)
            await settled(app, pilot)
            if tab in telling:
                await soon(app, pilot, lambda: begins in painted(app))
            for key in ("enter", "question_mark", "i", "A"):
                await pilot.press(key)
                await settled(app, pilot)
                painted(app)
                while len(app.screen_stack) > 1:
                    await pilot.press("escape")
                    await pilot.pause()
    assert app.return_code in (0, None)
