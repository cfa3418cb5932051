"""Text of a database that would act on a terminal, on markup or on widths is shown for what it is, and does nothing."""

from __future__ import annotations

import json
import shutil
import sqlite3
import unicodedata
from contextlib import closing
from pathlib import Path

import pytest

from emmy_tui.app import EmmyApp
from emmy_tui.database_source import DatabaseSource
from emmy_tui.text import clean
from tests.cli.hostile import fill
from tests.emmy_tui.looking import application, running, strips
from tests.emmy_tui.measured import settled
from tests.emmy_tui.test_leaving import soon

SIZE = (160, 45)
TEXTS = {
    "markup": "[bold red]a[/] [@click=app.quit]b[/] [/x] \\[c] \\",
    "sequences": "q\x1b]52;c;aGk=\x07\x1b[2Jr\x1b[?1003h\x9b31ms\x85t\x7fu\rv\nw\tx",
    "directions": "\u202eright\u2066to\u200bleft\u200e\ufeff",
    "widths": "宽宽e\u0301\u0301 👩\u200d👩\u200d👧 🇩🇪 \ufe0f✓\u3000z",
    "long": "x" * 5000,
}
COLUMNS = (
    *(("kernel", "label"), ("kernel", "shape"), ("pin", "author"), ("pin", "note"), ("run", "target"), ("run", "gpu")),
    *(("run", "command"), ("run", "author"), ("context", "gpu"), ("suggestion", "reason"), ("suggestion", "author")),
    *(("grouping", "reason"), ("node", "label"), ("act", "author")),
)
CAUSES = ("cause", "normalized_cause")
TABS, TELLING = "123456", "1236"
"""All of them, and those that show some of the text in any case."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("hostile") / "base.db")


def with_text(path: Path, text: str) -> None:
    """Put the text wherever the database keeps words: in columns, and in what events say of kernels and runs."""
    with closing(sqlite3.connect(path)) as database:
        words = {word for (word,) in database.execute("SELECT label FROM kernel UNION SELECT target FROM run")}
        for number, body in database.execute("SELECT rowid, body FROM event").fetchall():
            said = json.loads(body)
            for name, value in said.items():
                said[name] = (
                    text if (isinstance(value, str) and value in words) or name in ("text", "reason") else value
                )
            database.execute("UPDATE event SET body = ? WHERE rowid = ?", (json.dumps(said), number))
        for table, column in COLUMNS:
            database.execute(f"UPDATE {table} SET {column} = ?", (text,))
        fails = "status = 'failed', failure_kind = 'crash', median_us = NULL, cause = :text, normalized_cause = :text"
        database.execute(f"UPDATE measurement SET {fails} WHERE id % 3 = 0", {"text": text})
        database.commit()


def painted(app: EmmyApp) -> str:
    """What is on the screen, where each line is as wide as the screen and nothing acts on the terminal."""
    lines = strips(app)
    assert len(lines) == SIZE[1]
    for line in lines:
        assert line.cell_length == SIZE[0], line.text
        assert not [one for one in line.text if unicodedata.category(one) in ("Cc", "Cf", "Cs")], line.text
    return "\n".join(line.text for line in lines)


@pytest.mark.parametrize("kind", TEXTS)
async def test_text_is_shown_and_does_nothing(base: Path, tmp_path: Path, kind: str) -> None:
    path, text = Path(shutil.copy(base, tmp_path / "e.db")), TEXTS[kind]
    with_text(path, text)
    app = application(DatabaseSource(path))
    begins = clean(text)[:5].strip()
    async with running(app, SIZE) as pilot:
        for tab in TABS:
            await pilot.press(tab)
            await settled(app, pilot)
            if tab in TELLING:
                await soon(app, pilot, lambda: begins in painted(app))
            for key in ("enter", "question_mark", "i", "A"):
                await pilot.press(key)
                await settled(app, pilot)
                painted(app)
                while len(app.screen_stack) > 1:
                    await pilot.press("escape")
                    await pilot.pause()
    assert app.return_code in (0, None)
