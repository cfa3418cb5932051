"""How many instructions an activation takes for one element: `python -m tests.codegen.half_instructions`.

Needs no GPU: kernels with the exact text, with that for results of 16 bits, and with none are assembled for sm_90, and
their instructions are counted. What the kernel without an activation has is taken off, and the rest is shared out; it
multiplies by a number instead, since ptxas adds two vectors of bfloat16 alone without ever making float32 of them.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import triton

from engine.codegen import KernelSource, render
from engine.codegen.expressions import Operand, pointwise_text
from engine.codegen.half_results import HALF_HELPERS
from engine.deploy.instructions import sass_instructions
from engine.ir import GraphBuilder, Kernel
from engine.ir.graph import Op, TensorSpec
from engine.runtime import compile_source
from engine.vocabulary import Schedule, Target

KINDS = ("gelu", "gelu_tanh", "silu", "sigmoid")
_BLOCK, _WARPS = 2048, 4
_ELEMENTS = _BLOCK // (32 * _WARPS)
_SCHEDULE = Schedule.of({"BLOCK": _BLOCK, "NUM_WARPS": _WARPS, "EVICTION": ""})
_CALL = re.compile(rf"(?<== )(?:{'|'.join(HALF_HELPERS)})\((\w+)\)")


def sources(kind: str) -> dict[str, KernelSource]:
    """The kernel that adds two vectors and applies `kind`, in its forms."""
    builder = GraphBuilder()
    x, y = (builder.input(TensorSpec.contiguous((1 << 20,), "bfloat16")) for _ in range(2))
    op = Op(kind, (), TensorSpec((), "float32", ()))
    source = render(Kernel("pointwise", builder.build(builder.add(kind, builder.add("add", x, y)))), _SCHEDULE)
    exact = pointwise_text(op, [Operand("operand", "float32")])
    texts = {"product": r"\1 * 0.7", "exact": exact.replace("operand", r"\1"), "half": r"\g<0>"}
    return {form: replace(source, text=_CALL.sub(text, source.text)) for form, text in texts.items()}


def counted(source: KernelSource, folder: Path) -> Counter[str]:
    """The kernel's SASS instructions by kind."""
    built = compile_source(source, Target(), folder)
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    binary = folder / "cubin"
    binary.write_bytes(built.kernel.asm["cubin"])
    told = subprocess.run([tool, "--print-code", binary], capture_output=True, text=True, timeout=60, check=True)
    return sass_instructions(told.stdout)


def an_element(kind: str, folder: Path) -> dict[str, tuple[float, float]]:
    """Of the exact form and of that for 16 bits: instructions an element, and how many of those are MUFU's."""
    found = {form: counted(source, folder) for form, source in sources(kind).items()}
    product = found.pop("product")
    return {
        form: ((n.total() - product.total()) / _ELEMENTS + 1, (n["MUFU"] - product["MUFU"]) / _ELEMENTS)
        for form, n in found.items()
    }


def main() -> None:
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            forms = an_element(kind, Path(folder))
        said = "; ".join(f"{form} {all_:.1f} ({mufu:.0f} MUFU)" for form, (all_, mufu) in forms.items())
        print(f"{kind}: instructions an element: {said}")


if __name__ == "__main__":
    main()
