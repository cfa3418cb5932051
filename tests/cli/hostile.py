"""A whole database, and edits that somebody hostile would make to it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from engine.store import Store, Suggestion
from engine.tune.settings import Settings
from tests.deploy.samples import THERE
from tests.tune.fake_device import FakeDevice
from tests.tune.rig import linear_gelu_program, tune_with

EDITED = ("context", "kernel", "run", "grouping", "grouping_kernel", "measurement", "node", "event", "pin")
TABLES = (*EDITED, "suggestion", "meta")

VALUES: tuple[Any, ...] = (
    *(None, "", "NaN", "nonsense", "x'); DROP TABLE kernel; --", "\x00\x1b[2J\n", "é\u2028", -1, 0, 2**62, 1e308, -1.5),
    *(float("inf"), b"\xff\xfe", "{}", "[]", "null", "1", '"text"', '{"a": [1]}', '{"BLOCK_M": 1.5}', "[" * 5000),
    '{"NUM_WARPS": 4, "NUM_WARPS": 8}',
    '{"ops": [{"kind": "exec", "inputs": [], "shape": [-4], "dtype": "float32", "strides": [1], "offset": 0}]}',
)

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


def fill(path: Path) -> Path:
    """A finished run of two groupings with failures, deploy times, assembled checks, a pin and a suggestion."""
    device = FakeDevice()
    tune_with(path, device, linear_gelu_program(64), Settings(patience=3, limit=5))
    with Store.open(path) as store:
        kernel = store.kernels()[0]
        best = store.best_known(kernel.key, device.context.key)
        if best is None:
            raise AssertionError("the fake device measured nothing")
        store.record_pin(kernel.key, best.schedule, device.context.key, author="ana", note="steady")
        store.suggest([Suggestion(kernel.key, best.schedule, THERE, "measured on NVIDIA B200", 3.0)])
    return path


def cells(path: Path) -> list[tuple[str, str, int]]:
    """Table, column and rowid of some cells of every table."""
    conn = sqlite3.connect(path)
    found = []
    for table in TABLES:
        columns = [row[1] for row in conn.execute(f'PRAGMA table_info("{table}")')]
        rows = [row[0] for row in conn.execute(f'SELECT rowid FROM "{table}" ORDER BY rowid LIMIT 3')]
        rows += [row[0] for row in conn.execute(f'SELECT rowid FROM "{table}" ORDER BY rowid DESC LIMIT 1')]
        found += [(table, column, rowid) for column in columns for rowid in dict.fromkeys(rows)]
    conn.close()
    return found


def edit(path: Path, table: str, column: str, rowid: int, value: Any) -> None:
    """Put a value into a cell; one that a constraint refuses stays out."""
    conn = sqlite3.connect(path)
    try:
        conn.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, rowid))
        conn.commit()
    except sqlite3.IntegrityError:
        conn.rollback()
    finally:
        conn.close()


def read(path: Path, table: str, column: str, rowid: int) -> Any:
    conn = sqlite3.connect(path)
    try:
        return conn.execute(f'SELECT "{column}" FROM "{table}" WHERE rowid = ?', (rowid,)).fetchone()[0]
    finally:
        conn.close()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to everything inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in ((*path, key), *places(item, (*path, key)))]


@st.composite
def edited_json(draw: st.DrawFn, text: str) -> str:
    """A JSON text with one of its values replaced or gone."""
    try:
        document = json.loads(text)
    except ValueError:
        return "[]"
    every = places(document)
    if not every:
        return "[]"
    *where, last = draw(st.sampled_from(every))
    inner = document
    for key in where:
        inner = inner[key]
    if draw(st.booleans()):
        inner[last] = draw(st.sampled_from((None, -4, 2**70, 1.5, "exec", 'a"\n', [], {}, True, float("nan"))))
    else:
        del inner[last]
    return json.dumps(document)


def counted(path: Path) -> dict[str, int]:
    """Rows of every table."""
    conn = sqlite3.connect(path)
    try:
        return {table: conn.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in TABLES}
    finally:
        conn.close()


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


def with_knobs(path: Path, text: str) -> None:
    """Add a knob that has the text as its name and its value to every schedule, and the text to its words."""
    with closing(sqlite3.connect(path)) as database:
        for table in ("measurement", "pin", "suggestion"):
            for number, schedule in database.execute(f"SELECT rowid, schedule FROM {table}").fetchall():
                knobs = {n: f"{text}{v}" if isinstance(v, str) else v for n, v in json.loads(schedule).items()}
                changed = json.dumps({**knobs, text: text}, sort_keys=True)
                database.execute(f"UPDATE {table} SET schedule = ? WHERE rowid = ?", (changed, number))
        database.commit()
