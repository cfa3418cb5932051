"""The installed wheel holds what the source tree holds: every module, the screens' style sheet, the demo."""

from __future__ import annotations

import json
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed() -> Distribution:
    found = distribution("emmy-tui")
    origin = json.loads(found.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        pytest.skip("an editable install has no files of its own; .ci/run tests a wheel")
    return found


def test_every_file_is_in_the_wheel(installed: Distribution) -> None:
    shipped = {str(path) for path in installed.files or ()}
    wanted = {
        str(path.relative_to(ROOT))
        for package in ("engine", "emmy_tui")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - shipped == set()
    assert {path for path in shipped if path.split("/")[0] in {"tests", "screenshots", ".ci"}} == set()


def test_the_commands_are_installed(installed: Distribution) -> None:
    assert {entry.name for entry in installed.entry_points if entry.group == "console_scripts"} == {"emmy", "emmy-tui"}
