"""Reading where there may be no database yet: as from one without rows, and no file is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.store import Store, StoreError, opened_to_read


def test_one_that_may_be_missing_is_as_without_rows(tmp_path: Path) -> None:
    with opened_to_read(tmp_path / "none.db", may_be_missing=True) as store:
        assert (store.runs(), store.contexts(), store.context("anything")) == ((), (), None)
    assert list(tmp_path.iterdir()) == []


def test_one_that_has_to_be_there_is_missed(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match="there is no database at"),
        opened_to_read(tmp_path / "none.db", may_be_missing=False),
    ):
        pass


def test_one_that_is_there_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    Store.open(path).close()
    before = path.read_bytes()
    with opened_to_read(path, may_be_missing=True) as store:
        assert store.path == path
    assert path.read_bytes() == before
