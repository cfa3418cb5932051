"""Kernel text in, GPU binary and build report out; needs no GPU and no driver, so any process can do it.

The text is written to a file named by its content, because Triton reads a kernel's source from a file and makes its
cache key of it: two processes with one cache folder and one text share one binary.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from engine.codegen import KernelSource, machine_code
from engine.runtime import _triton_compat
from engine.runtime.acf import FrozenKernel, write_whole
from engine.runtime.failures import DiskFull, failure_of, no_space, shared_memory_failure, threads_failure
from engine.vocabulary import BuildReport, Failure, Target

THREADS_OF_A_BLOCK = 1024
"""Most threads of one block on every CUDA GPU (CUDA programming guide, technical specifications)."""

_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


class BuildError(Exception):
    """A source that does not become a binary: `failure` says why, `build` holds what is known all the same."""

    def __init__(self, failure: Failure, build: BuildReport) -> None:
        super().__init__(f"{failure.kind.value}: {failure.cause}")
        self.failure = failure
        self.build = build


@dataclass(frozen=True, slots=True)
class CompiledSource:
    """A source and its Triton binary. `build.registers` and `.spills` are None when the binary came from the cache."""

    source: KernelSource
    kernel: Any
    build: BuildReport


def compile_source(
    source: KernelSource, target: Target, folder: Path, ptxas_level: int = 3, ptxas_options: str = ""
) -> CompiledSource:
    """Compile for `target`; `folder` receives the text. TRITON_CACHE_DIR decides where the binary is kept.

    Level 3 is ptxas's own default and adds nothing to its command line. Spills in the report are bytes a thread, stores
    plus loads, as `ptxas -v` counts them. A source with controls is assembled with those that `folder` holds.
    Raises BuildError for whatever the source does wrong, DiskFull where the disk has no room for the binary.
    """
    start = time.perf_counter()
    threads = source.num_warps * 32
    if threads > THREADS_OF_A_BLOCK:
        raise BuildError(threads_failure(THREADS_OF_A_BLOCK), BuildReport(compile_s=0.0))
    options = _options(source, ptxas_level, ptxas_options)
    frozen = FrozenKernel(source, options, folder)
    try:
        kernel, log_text = _compiled(source, target, folder, options, frozen)
        if source.acf:
            log_text = _assemble(kernel, target, options, frozen)
    except Exception as error:
        place = os.environ.get("TRITON_CACHE_DIR", str(folder))
        if no_space(error, Path(place)):
            raise DiskFull(f"no space is left under {place}, where compiled candidates are kept") from None
        raise BuildError(failure_of(error), BuildReport(compile_s=time.perf_counter() - start)) from None
    registers, spills = read_ptxas_log(log_text)
    seconds = time.perf_counter() - start
    shared = int(kernel.metadata.shared)
    build = BuildReport(registers, spills, shared, seconds, len(machine_code(kernel.kernel)))
    if kernel.metadata.num_warps * 32 > THREADS_OF_A_BLOCK:
        raise BuildError(threads_failure(THREADS_OF_A_BLOCK), build)
    if kernel.metadata.shared > target.shared_bytes:
        raise BuildError(shared_memory_failure(target.shared_bytes), build)
    return CompiledSource(source, kernel, build)


def _compiled(
    source: KernelSource, target: Target, folder: Path, options: dict[str, object], frozen: FrozenKernel
) -> tuple[Any, str]:
    """Triton's kernel without controls, and what ptxas said of it; "" where the cache had it and nobody kept that."""
    function = load_function(write_source(source, folder), source.entry)
    names, types = tuple(a.name for a in source.arguments), tuple(a.type for a in source.arguments)
    with frozen.alone(), _triton_compat.frozen_ptx(frozen.keep_ptx), _triton_compat.captured_ptxas_log() as log:
        kernel: Any = _triton_compat.build(function, names, types, target.capability, options)
        return kernel, frozen.said(log.getvalue(), controlled=False)


def _assemble(kernel: Any, target: Target, options: dict[str, object], frozen: FrozenKernel) -> str:
    """Give the kernel the binary that the controls make of its PTX; what ptxas said of it.

    Nothing but the machine code changes: names, arguments and shared memory that Triton asks for are the kernel's.
    """
    log_text = ""
    if not frozen.cubin.is_file():
        with frozen.option() as option, _triton_compat.captured_ptxas_log() as log:
            told = " ".join(filter(None, (str(options.get("ptx_options", "")), option)))
            ptx = frozen.ptx.read_text(encoding="utf-8")
            cubin = _triton_compat.assemble(ptx, target.capability, {**options, "ptx_options": told})
            log_text = log.getvalue()
        frozen.keep_cubin(cubin)
    kernel.kernel = kernel.asm["cubin"] = frozen.cubin.read_bytes()
    return frozen.said(log_text, controlled=True)


def write_source(source: KernelSource, folder: Path) -> Path:
    """Put the text into `folder` under a name made of its content; an existing file is that same text."""
    path = folder / f"emmy_{hashlib.sha256(source.text.encode()).hexdigest()[:16]}.py"
    if not path.exists():
        write_whole(path, source.text.encode())
    return path


def load_function(path: Path, entry: str) -> Any:
    """Execute a generated module and return its function. Nothing is left in sys.modules, and no bytecode on disk."""
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    linecache.cache.pop(str(path), None)
    return getattr(module, entry)


def read_ptxas_log(text: str) -> tuple[int | None, int | None]:
    """Registers a thread, and bytes of spill stores plus loads, from what `ptxas -v` says; None where it is silent."""
    registers = [int(found) for found in _REGISTERS.findall(text)]
    spills = [int(stores) + int(loads) for stores, loads in _SPILLS.findall(text)]
    return (max(registers) if registers else None, sum(spills) if spills else None)


def _options(source: KernelSource, ptxas_level: int, ptxas_options: str) -> dict[str, object]:
    text = " ".join(part for part in (f"--opt-level {ptxas_level}" if ptxas_level != 3 else "", ptxas_options) if part)
    options: dict[str, object] = {"num_warps": source.num_warps, "num_stages": source.num_stages}
    if source.pdl:
        options["launch_pdl"] = True
    return {**options, "ptx_options": text} if text else options
