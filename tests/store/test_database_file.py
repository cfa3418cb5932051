"""Files taken away: what SQLite keeps beside a database goes with it, what another program keeps there stays."""

from __future__ import annotations

from pathlib import Path

from engine.store import remove_database


def test_a_database_goes_with_what_is_kept_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "here.db"
    for name in ("", "-wal", "-shm", "-journal", "-notes"):
        path.with_name(path.name + name).write_bytes(b"")
    (tmp_path / "there.db-wal").write_bytes(b"")
    remove_database(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["here.db-notes", "there.db-wal"]
    remove_database(path)
