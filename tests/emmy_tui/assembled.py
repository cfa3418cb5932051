"""Machine code as a compiler writes it, for the tests that only look at it."""

from __future__ import annotations

from dataclasses import replace

from engine.deploy import Listed
from tests.deploy.test_instructions import CUOBJDUMP, PTX


def assembled(read: Listed) -> Listed:
    return replace(read, ptx=PTX, sass=CUOBJDUMP, registers=168, spills=8, shared_bytes=49152, code_bytes=1024)
