"""The tests live in UTC, without colour settings of their own, and under one version: the pictures show all three."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def fixed_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    for name in ("NO_COLOR", "SSH_CONNECTION", "COLORTERM", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)
    for module in ("emmy_tui.widgets.status", "emmy_tui.help"):
        monkeypatch.setattr(f"{module}.__version__", "0.1.0")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
