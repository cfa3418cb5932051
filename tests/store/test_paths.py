"""Where the database lives when nobody says."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.store import default_database_path, user_data_folder


def test_the_users_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_database_path() == user_data_folder() / "tune.db"
    assert user_data_folder().name == "emmy"
