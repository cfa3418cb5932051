"""A source that waits becomes a binary that waits before it reads, and is launched as one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.codegen import KernelSource, with_dependent_launch
from engine.runtime import compile_source
from engine.vocabulary import Target
from tests.runtime.sources import add_source, matmul_source

READS = re.compile(r"\bld\.global|cp\.async\.(?:bulk|cg|ca)")


@pytest.mark.parametrize("source", [add_source(), matmul_source()], ids=["add", "matmul"])
def test_the_wait_comes_before_everything_that_is_read(
    source: KernelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    plain = compile_source(source, Target(), tmp_path)
    waiting = compile_source(with_dependent_launch(source), Target(), tmp_path)
    assert not plain.kernel.metadata.launch_pdl
    assert "griddepcontrol" not in plain.kernel.asm["ptx"]
    assert waiting.kernel.metadata.launch_pdl
    ptx = waiting.kernel.asm["ptx"]
    read = READS.search(ptx)
    assert read is not None
    assert ptx.index("griddepcontrol.wait") < read.start()
    assert read.start() < ptx.index("griddepcontrol.launch_dependents")
