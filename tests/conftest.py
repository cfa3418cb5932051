"""What holds for every test: hypothesis judges by what is true, and not by how long an example took."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("without a clock", deadline=None)
settings.load_profile("without a clock")
