"""A copy holds every committed row, appears whole or not at all, and never touches its source."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from engine.store import Store, StoreError, copy_database
from engine.store.errors import StoreMissing


def test_a_database_that_is_being_written_is_copied_whole(path: Path, store: Store, run: str, sample) -> None:
    store.record_measurement(sample.ok(), run=run)
    copy = copy_database(path, path.parent / "copies" / "demo.db")
    store.record_measurement(sample.ok(NUM_WARPS=8), run=run)
    assert [file.name for file in copy.parent.iterdir()] == ["demo.db"]
    with Store.open(copy) as copied:
        assert copied.schedules(sample.matmul.key, sample.context.key) == (sample.schedule(),)
        copied.start_run(sample.run_info("in the copy"))
    assert len(store.runs()) == 1


def test_an_old_copy_is_replaced_with_its_log(path: Path, store: Store, run: str, sample) -> None:
    target = path.parent / "demo.db"
    with Store.open(target) as old:
        sample.begin(old)
        for suffix in ("", "-wal"):
            subprocess.run(["cp", f"{target}{suffix}", f"{target}{suffix}.kept"], check=True)
    Path(f"{target}-wal").write_bytes(Path(f"{target}-wal.kept").read_bytes())
    copy_database(path, target)
    with Store.open(target) as copied:
        assert [stored.id for stored in copied.runs()] == [run]


def test_what_is_no_database_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "garbage").write_bytes(b"garbage")
    for source in ("garbage", "missing"):
        with pytest.raises(StoreError):
            copy_database(tmp_path / source, tmp_path / "copy.db")
    assert [file.name for file in tmp_path.iterdir()] == ["garbage"]
    with pytest.raises(StoreMissing):
        copy_database(tmp_path / "missing", tmp_path / "copy.db")


def test_a_place_that_can_not_be_written(path: Path, store: Store) -> None:
    with pytest.raises(StoreError, match=r"copy\.db"):
        copy_database(path, path / "below a file" / "copy.db")
