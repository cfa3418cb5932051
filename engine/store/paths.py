"""Where Emmy keeps its files when the user names no place."""

from __future__ import annotations

from pathlib import Path

import platformdirs


def user_data_folder() -> Path:
    """The user's data folder for Emmy; it need not exist yet."""
    return Path(platformdirs.user_data_dir("emmy", appauthor=False))


def default_database_path() -> Path:
    return user_data_folder() / "tune.db"
