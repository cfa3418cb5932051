"""Most of `interpret` is tested by what the generators' tests run in it; here is what a process without it says."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from engine.codegen import KernelSource
from engine.runtime.interpret import interpret

_NAN_PROGRAM = """
import torch
from engine.codegen import KernelSource
from engine.codegen.source import Argument
from engine.ir import TensorSpec
from engine.runtime.interpret import interpret
text = '''
import triton
import triton.language as tl

@triton.jit
def half(in0, out0):
    index = tl.arange(0, 4)
    tl.store(out0 + index, tl.load(in0 + 2 + index) / 2, mask=index < 3)
'''
arguments = (Argument("in0", "input", 0, "*fp32"), Argument("out0", "output", 0, "*fp32"))
source = KernelSource(text, "half", arguments, (1, 1, 1), 1, 1)
x = torch.arange(8.0).as_strided((4,), (1,), 2)
(result,) = interpret(source, [x], [TensorSpec.contiguous((4,), "float32")])
print(result.tolist())
"""


def test_process_that_does_not_interpret_says_so() -> None:
    if os.environ.get("TRITON_INTERPRET"):
        pytest.skip("this process interprets")
    with pytest.raises(RuntimeError, match="TRITON_INTERPRET=1"):
        interpret(KernelSource("", "", (), (1, 1, 1), 1, 1), [], [])


def test_pointers_are_where_storages_start_and_outputs_are_poisoned() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", _NAN_PROGRAM]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert finished.stdout.strip() == "[1.0, 1.5, 2.0, nan]", finished.stderr[-1000:]
