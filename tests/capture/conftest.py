"""What every capture in these tests shares: torch's list of composite ops."""

from __future__ import annotations

import pytest

from tests.capture.composites import list_composites_once


@pytest.fixture(autouse=True, scope="session")
def _listed_once() -> None:
    list_composites_once()
