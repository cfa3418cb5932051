"""Where the database lives when nobody says, and how its path is written for a shell."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from engine.store import Store, StoreError, default_database_path, user_data_folder
from engine.store.errors import damaged


def test_the_users_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_database_path() == user_data_folder() / "tune.db"
    assert user_data_folder().name == "emmy"


def test_a_command_in_a_sentence_can_be_pasted(tmp_path: Path) -> None:
    """A shell takes the path in it as that path, whatever it is called."""
    path = tmp_path / "a b?c#d'e.db"
    path.touch()
    with pytest.raises(StoreError) as empty:
        Store.open(path, read_only=True)
    for error in (empty.value, damaged(path, "malformed")):
        (command,) = re.findall("`([^`]+)`", str(error))
        assert str(path) in shlex.split(command)
