"""Work-arounds for what Triton versions do differently, each with the condition that ends it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend, get_ptxas_version
from triton.compiler import ASTSource, make_backend

ALIGNED = [["tt.divisibility", 16]]
"""Attribute of a pointer argument that is a multiple of 16 bytes, as Triton's own launcher states it."""


def pointer_attributes(types: tuple[str, ...]) -> dict[tuple[int, ...], list[list[object]]]:
    """Attributes of a signature whose pointers are all 16-byte aligned.

    Keys are paths of positions since Triton 3.3. Ends when ASTSource takes argument names here.
    """
    return {(i,): list(ALIGNED) for i, text in enumerate(types) if text.startswith("*")}


def gpu_target(capability: int) -> GPUTarget:
    """The CUDA target of a compute capability (major * 10 + minor), with warps of 32 threads."""
    return GPUTarget("cuda", capability, 32)


def build(
    function: object, names: tuple[str, ...], types: tuple[str, ...], capability: int, options: dict[str, object]
) -> object:
    """Compile a @triton.jit function ahead of time; needs no driver and no GPU.

    `triton.compile` with an ASTSource is the path that Triton's own ahead-of-time tool takes. Ends when Triton offers
    a compile call that takes a target and a signature.
    """
    source = ASTSource(function, dict(zip(names, types, strict=True)), {}, pointer_attributes(types))
    return triton.compile(source, target=gpu_target(capability), options=options)


def assemble(ptx: str, capability: int, options: dict[str, object]) -> bytes:
    """Run Triton's own ptxas command on PTX that an earlier compile made; `options` are that compile's, and ptxas's.

    Raises PTXASError with what ptxas said. Ends when `triton.compile` starts from PTX with options.
    """
    backend = make_backend(gpu_target(capability))
    cubin: bytes = backend.make_cubin(ptx, {}, backend.parse_options(dict(options)), capability)
    return cubin


def forget_ptxas() -> None:
    """Let Triton ask anew what the ptxas is that it calls: it keeps the first answer. Ends when it doesn't."""
    get_ptxas_version.cache_clear()


@contextlib.contextmanager
def frozen_ptx(keep: Callable[[str], None]) -> Iterator[None]:
    """Hand the PTX of each compile in the block to `keep`, before ptxas sees it.

    Triton stores binaries alone where it is told to save space. Ends when it can be told which stages to store.
    """
    original = CUDABackend.make_cubin

    def make_cubin(self: object, src: str, *rest: object) -> object:
        keep(src)
        return original(self, src, *rest)

    CUDABackend.make_cubin = make_cubin
    try:
        yield
    finally:
        CUDABackend.make_cubin = original


@contextlib.contextmanager
def captured_ptxas_log() -> Iterator[io.StringIO]:
    """What `ptxas -v` prints while the block runs, and anything else Python code prints there.

    Triton writes ptxas's log to a file that it deletes, and prints it on stdout when asked to; on failure it prints the
    whole PTX there too. Ends when a compiled kernel carries its register and spill counts (3.6 leaves that undone).
    """
    text = io.StringIO()
    before = knobs.nvidia.dump_ptxas_log
    knobs.nvidia.dump_ptxas_log = True
    try:
        with contextlib.redirect_stdout(text):
            yield text
    finally:
        knobs.nvidia.dump_ptxas_log = before
