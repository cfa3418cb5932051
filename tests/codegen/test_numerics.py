"""Every family's bodies in Triton's interpreter against the float64 reference, in a process that interprets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.codegen.bodies import BODIES

ROOT = Path(__file__).parents[2]
LIMIT_S = 280


@pytest.mark.timeout(LIMIT_S + 20)
@pytest.mark.parametrize("family", sorted(BODIES))
@pytest.mark.slow
def test_generated_kernels_match_the_reference(family: str) -> None:
    command = [sys.executable, "-m", "tests.codegen.interpreted", family]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert finished.returncode == 0, finished.stderr[-2000:]
    lines = [json.loads(line) for line in finished.stdout.splitlines()]
    assert [line for line in lines if "problem" in line] == []
    checked = {line["body"]: line["checked"] for line in lines if "checked" in line}
    assert set(checked) == set(BODIES[family])
    assert min(checked.values()) > 0
