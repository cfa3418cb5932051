"""Files taken away: what SQLite keeps beside a database goes with it, what another program keeps there stays; and
whether a file can be written, as far as that is seen from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.store import remove_database, unwritable_because


def test_a_database_goes_with_what_is_kept_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "here.db"
    for name in ("", "-wal", "-shm", "-journal", "-notes"):
        path.with_name(path.name + name).write_bytes(b"")
    (tmp_path / "there.db-wal").write_bytes(b"")
    remove_database(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["here.db-notes", "there.db-wal"]
    remove_database(path)


def test_why_a_file_can_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "here.db"
    path.write_bytes(b"")
    assert unwritable_because(path) == ""
    for locked, what in ((path, f"the file {path}"), (tmp_path, f"the folder {tmp_path}")):
        monkeypatch.setattr(os, "access", lambda asked, mode, locked=locked: Path(asked) != locked)
        assert unwritable_because(path) == f"{what} can't be written"
