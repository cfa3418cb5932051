"""A database of every schema version ever written opens, keeps every row, and reads as if it were new."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlite_utils import Database

from engine.store import SCHEMA, Store
from engine.store.errors import NotEmmys
from engine.store.migrations import MIGRATIONS, Migration, migrate, schema_version
from engine.store.schema import TABLES
from engine.vocabulary import FailureKind, Regime

OLD = sorted((Path(__file__).parent / "old").glob("schema_*.db"))


def contents(path: Path) -> dict[str, list[dict[str, object]]]:
    db = Database(path)
    found = {name: list(db[name].rows) for name in db.table_names() if name != "meta"}
    db.close()
    return found


def test_there_is_a_database_of_every_version() -> None:
    assert [path.name for path in OLD] == [f"schema_{version}.db" for version in range(1, SCHEMA + 1)]
    assert len(MIGRATIONS) == SCHEMA


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("old", OLD, ids=lambda path: path.stem)
def test_an_old_database_is_upgraded_and_keeps_its_rows(tmp_path: Path, old: Path, read_only: bool) -> None:
    path = Path(shutil.copy(old, tmp_path))
    before = contents(path)
    with Store.open(path, read_only=read_only) as store:
        (run,) = store.runs()
        (variants,) = store.variants("matmul")
        (cluster,) = store.failures()
        (grouping,) = store.recorded_groupings(run.id)
        assert (variants.ok, variants.failed, variants.rows[0].us, variants.rows[0].deploy_us) == (2, 1, 10.0, 9.0)
        assert cluster.kinds == (FailureKind.HANG,)
        assert (grouping.sum_us, grouping.assembled_us) == (30.0, 31.0)
        (context,) = store.contexts()
        assert store.best(variants.kernel, context.key, Regime.DEPLOY).us == 9.0
        assert len(list(store.events_of(run.id))) > 3
        assert store.program(run.id).target == run.target
        assert [kernel.label for kernel in store.kernels()] == ["matmul", "relu"]
    after = contents(path)
    for table, rows in before.items():
        assert [{name: row[name] for name in old_row} for old_row, row in zip(rows, after[table], strict=True)] == rows


def opened(path: Path) -> Database:
    return Database(sqlite3.connect(path, isolation_level=None))


def add_a_column(db: Database) -> None:
    db.table("pin").add_column("color", str)


def fail_half_way(db: Database) -> None:
    db.table("pin").add_column("shape", str)
    raise RuntimeError("half way")


def test_migrations_run_in_order_and_once(path: Path) -> None:
    db = opened(path)
    steps: Sequence[Migration] = (*MIGRATIONS, add_a_column)
    assert schema_version(db) == 0
    migrate(db, steps)
    migrate(db, steps)
    assert schema_version(db) == SCHEMA + 1
    assert "color" in db.table("pin").columns_dict
    assert set(TABLES) <= set(db.table_names())
    db.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was(path: Path, sample) -> None:
    with Store.open(path) as store:
        sample.begin(store)
    before = contents(path)
    db = opened(path)
    with pytest.raises(RuntimeError, match="half way"):
        migrate(db, (*MIGRATIONS, add_a_column, fail_half_way))
    assert schema_version(db) == SCHEMA + 1
    assert "shape" not in db.table("pin").columns_dict
    assert not db.conn.in_transaction
    db.close()
    assert contents(path) == before


def test_a_reader_upgrades_a_copy_in_memory(path: Path, sample, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(path) as store:
        run = sample.begin(store)
        store.record_measurement(sample.ok(), run=run)
    before = path.read_bytes()
    monkeypatch.setattr("engine.store.connection.SCHEMA", SCHEMA + 1)
    monkeypatch.setattr("engine.store.connection.migrate", lambda db: migrate(db, (*MIGRATIONS, add_a_column)))
    with Store.open(path, read_only=True) as store:
        assert store.frozen
        assert store.variants()[0].ok == 1
        assert "color" in store._connection.db.table("pin").columns_dict
    assert path.read_bytes() == before
    with Store.open(path) as store:
        assert not store.frozen
        assert schema_version(store._connection.db) == SCHEMA + 1


def test_a_reader_does_not_create_tables(path: Path) -> None:
    sqlite3.connect(path).execute("PRAGMA user_version = 1").connection.close()
    with pytest.raises(NotEmmys, match="holds no tables yet"):
        Store.open(path, read_only=True)
