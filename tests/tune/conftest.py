"""What every run in these tests shares: a text is captured once, since that takes a process that loads torch."""

from __future__ import annotations

from functools import cache

import pytest

from engine.capture import capture

remembered = cache(capture)


@pytest.fixture(autouse=True)
def _captured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.tune.live.capture", remembered)
