"""An engine's process finds what these tests give it to do, also where the product is installed elsewhere."""

from __future__ import annotations

import pytest

from tests.session.works import ROOT


@pytest.fixture(autouse=True)
def _tests_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ROOT)
