"""Work-arounds for what Triton versions do differently, each with the condition that ends it."""

from __future__ import annotations

import contextlib
import errno
import inspect
import io
from collections.abc import Callable, Iterator
from typing import Any

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDABackend, get_ptxas_version
from triton.compiler import ASTSource, make_backend

from engine.runtime.machine_code import is_whole

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
    """Compile a @triton.jit or @gluon.jit function ahead of time; needs no driver and no GPU.

    `triton.compile` with an ASTSource is the path that Triton's own ahead-of-time tool takes. Ends when Triton offers
    a compile call that takes a target and a signature.
    """
    of = _gluon_source() if is_gluon(function) else ASTSource
    source = of(function, dict(zip(names, types, strict=True)), {}, pointer_attributes(types))
    return triton.compile(source, target=gpu_target(capability), options=options)


def is_gluon(function: object) -> bool:
    """Whether a jitted function is written in Gluon."""
    asked = getattr(function, "is_gluon", None)
    return bool(asked()) if callable(asked) else False


def has_gluon() -> bool:
    """Whether this Triton has what kernels with roles for warps are made of, under the names and arguments of 3.6.

    Gluon is experimental: another version may move, rename or change any of it, and then such kernels aren't offered.
    Ends when Gluon is stable.
    """
    try:
        from triton.experimental.gluon import language as gl
        from triton.experimental.gluon.language.nvidia import hopper

        _gluon_source()
        told = inspect.signature(gl.warp_specialize).parameters
        return (
            all(hasattr(gl, name) for name in _GLUON_LANGUAGE)
            and all(hasattr(hopper.mbarrier, name) for name in ("MBarrierLayout", "arrive", "expect", "init", "wait"))
            and all(hasattr(hopper.tma, name) for name in _GLUON_TMA)
            and all(hasattr(hopper, name) for name in ("fence_async_shared", "warpgroup_mma", "warpgroup_mma_wait"))
            and [name for name in told if not name.startswith("_")] == _WARP_SPECIALIZE
        )
    except (ImportError, AttributeError, TypeError, ValueError):
        return False


_GLUON_LANGUAGE = (
    *("DotOperandLayout", "NVMMADistributedLayout", "NVMMASharedLayout", "SliceLayout", "allocate_shared_memory"),
    *("convert_layout", "static_range", "thread_barrier", "warp_specialize"),
)
_GLUON_TMA = ("async_copy_global_to_shared", "async_copy_shared_to_global", "store_wait")
_WARP_SPECIALIZE = ["functions_and_args", "worker_num_warps", "worker_num_regs"]


def _gluon_source() -> Any:
    """What `triton.compile` takes for a @gluon.jit function. Raises ImportError for a Triton without it."""
    from triton.experimental.gluon._runtime import GluonASTSource

    return GluonASTSource


def assemble(ptx: str, capability: int, options: dict[str, object]) -> bytes:
    """Run Triton's own ptxas command on PTX that an earlier compile made; `options` are that compile's, and ptxas's.

    Raises PTXASError with what ptxas said, OSError where it had no space for the binary. Ends when `triton.compile`
    starts from PTX with options.
    """
    backend = make_backend(gpu_target(capability))
    return _whole(backend.make_cubin(ptx, {}, backend.parse_options(dict(options)), capability))


def _whole(cubin: bytes) -> bytes:
    """ptxas says that all went well where the disk took only a part of what it wrote, and Triton would keep that part
    for good. Ends when ptxas looks at what its writes return.
    """
    if not is_whole(cubin):
        raise OSError(errno.ENOSPC, "ptxas wrote only a part of its binary")
    return cubin


def hash_files() -> None:
    """Let Triton hash its own files now, for half a second: its cache's keys begin with that, once a process.

    Ends when Triton doesn't. A version that keeps the hash elsewhere takes it at the first compile.
    """
    with contextlib.suppress(ImportError):
        from triton.runtime.cache import triton_key

        triton_key()


def forget_ptxas() -> None:
    """Let Triton ask anew what the ptxas is that it calls: it keeps the first answer. Ends when it doesn't."""
    get_ptxas_version.cache_clear()


@contextlib.contextmanager
def frozen_ptx(keep: Callable[[str], None]) -> Iterator[None]:
    """Hand the PTX of each compile in the block to `keep`, before ptxas sees it, and let no part of a binary pass.

    Triton stores binaries alone where it is told to save space. Ends when it can be told which stages to store.
    """
    original = CUDABackend.make_cubin

    def make_cubin(self: object, src: str, *rest: object) -> bytes:
        keep(src)
        return _whole(original(self, src, *rest))

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
