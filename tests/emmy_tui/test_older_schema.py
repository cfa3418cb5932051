"""Databases of an older Emmy: upgraded in place where the screens may write, and a copy that says why elsewhere."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import pytest

from emmy_tui.main import arguments_parser
from emmy_tui.opening import open_source
from engine.data import SHIPPED_DEMO
from engine.store import SCHEMA, Store, upgrade_file
from engine.store.migrations import MIGRATIONS, migrate, schema_version
from tests.emmy_tui.looking import running, screen_text
from tests.emmy_tui.measured import CONTEXT, fill, matmul, over, press, schedules, settled
from tests.emmy_tui.test_source import until


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database that lacks the last migration of this Emmy."""

    def add_a_table(db: object) -> None:
        db.table("novelty").create({"id": int}, pk="id")  # type: ignore[attr-defined]

    path = fill(tmp_path / "old.db", rows=8)
    for module in ("connection", "known_schema"):
        monkeypatch.setattr(f"engine.store.{module}.SCHEMA", SCHEMA + 1)
    monkeypatch.setattr("engine.store.connection.migrate", lambda db: migrate(db, (*MIGRATIONS, add_a_table)))
    return path


def version(path: Path) -> int:
    database = sqlite3.connect(path)
    try:
        return int(database.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()[0])
    finally:
        database.close()


def test_an_older_file_is_upgraded_and_followed(older: Path) -> None:
    source = open_source(arguments_parser().parse_args([str(older)]))
    assert source is not None
    try:
        until(lambda: bool(source.drain(1)))
        assert not any("NOT UPDATING" in badge for badge in source.badges)
        assert version(older) == SCHEMA + 1
    finally:
        source.close()


def test_read_only_leaves_the_file_and_says_why(older: Path) -> None:
    before = older.read_bytes()
    source = open_source(arguments_parser().parse_args([str(older), "--read-only"]))
    assert source is not None
    try:
        until(lambda: bool(source.badges))
        assert source.badges[0] == "NOT UPDATING (older schema, opened read-only)"
    finally:
        source.close()
    assert older.read_bytes() == before


def test_a_current_file_is_not_touched(tmp_path: Path) -> None:
    path = fill(tmp_path / "now.db", rows=8)
    before = path.read_bytes(), path.stat().st_mtime_ns
    upgrade_file(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_the_demo_is_shipped_in_the_current_schema(tmp_path: Path) -> None:
    path = tmp_path / "demo.db"
    path.write_bytes(gzip.decompress(SHIPPED_DEMO.read_bytes()))
    with Store.open(path, read_only=True) as store:
        assert not store.frozen
        assert schema_version(store._connection.db) == SCHEMA


async def test_pins_of_another_process_show_by_themselves(tmp_path: Path) -> None:
    path = fill(tmp_path / "tune.db", rows=8)
    app = over(path)
    async with running(app, (160, 45)) as pilot:
        await press(app, pilot, "6")
        app.tick()
        await settled(app, pilot)
        assert "Nothing is pinned" in screen_text(app)
        with Store.open(path) as store:
            store.record_pin(matmul().key, schedules(matmul())[0], CONTEXT.key, author="ana", note="from elsewhere")
        app.tick()
        await settled(app, pilot)
        assert app.pins.list.count() == 1
        assert "from elsewhere" in screen_text(app)
        with Store.open(path) as store:
            store.unpin(matmul().key, CONTEXT.key)
        app.tick()
        await settled(app, pilot)
        assert app.pins.list.count() == 0
