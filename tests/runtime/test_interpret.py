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


_ROUNDING_PROGRAM = """
import torch
from engine.codegen import KernelSource
from engine.codegen.source import Argument
from engine.ir import TensorSpec
from engine.runtime.interpret import interpret
text = '''
import triton
import triton.language as tl

@triton.jit
def cast(in0, out0, out1, out2):
    index = tl.arange(0, 4096)
    narrow = tl.load(in0 + index).to(tl.bfloat16)
    tl.store(out0 + index, narrow)
    tl.store(out1 + index, narrow.to(tl.float64))
    tl.store(out2 + index, index.to(tl.bfloat16))
'''
kinds = {"out0": ("*bf16", "bfloat16"), "out1": ("*fp64", "float64"), "out2": ("*bf16", "bfloat16")}
outputs = [Argument(name, "output", n, kind) for n, (name, (kind, _)) in enumerate(kinds.items())]
source = KernelSource(text, "cast", (Argument("in0", "input", 0, "*fp32"), *outputs), (1, 1, 1), 1, 1)
bits = torch.randint(-2**31, 2**31, (4096,), dtype=torch.int64).to(torch.int32)
bits[:6] = torch.tensor([0x3FB28000, 0x3FB18000, 0x3FB18001, 0x7F7FFFFF, 0x00008000, 0x7FC00001], dtype=torch.int32)
x = bits.view(torch.float32)
found = interpret(source, [x], [TensorSpec.contiguous((4096,), dtype) for _, dtype in kinds.values()])
wanted = [x.bfloat16(), x.bfloat16().double(), torch.arange(4096).bfloat16()]
print([torch.equal(one.nan_to_num(7), other.nan_to_num(7)) for one, other in zip(found, wanted)])
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


def test_a_cast_to_bfloat16_rounds_to_the_nearest_even_number_as_torch_does() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", _ROUNDING_PROGRAM]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert finished.stdout.strip() == "[True, True, True]", finished.stderr[-1000:]
