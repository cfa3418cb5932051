"""What every run in these tests shares: a text is captured once, since that takes a process that loads torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from engine.capture import capture
from engine.ir.plan import Program

remembered = cache(capture)


def captured(code: str, given_up: Callable[[], bool] = lambda: False) -> Program:
    return remembered(code)


@pytest.fixture(autouse=True)
def _captured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.tune.live.capture", captured)
