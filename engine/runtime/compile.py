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

from engine.codegen import KernelSource
from engine.runtime import _triton_compat
from engine.runtime.failures import failure_of, shared_memory_failure, threads_failure
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
    plus loads, as `ptxas -v` counts them. Raises BuildError for whatever the source does wrong.
    """
    start = time.perf_counter()
    threads = source.num_warps * 32
    if threads > THREADS_OF_A_BLOCK:
        raise BuildError(threads_failure(THREADS_OF_A_BLOCK), BuildReport(compile_s=0.0))
    log_text = ""
    try:
        function = load_function(write_source(source, folder), source.entry)
        with _triton_compat.captured_ptxas_log() as log:
            kernel: Any = _triton_compat.build(
                function,
                tuple(a.name for a in source.arguments),
                tuple(a.type for a in source.arguments),
                target.capability,
                _options(source, ptxas_level, ptxas_options),
            )
            log_text = log.getvalue()
    except Exception as error:
        raise BuildError(failure_of(error), BuildReport(compile_s=time.perf_counter() - start)) from None
    registers, spills = read_ptxas_log(log_text)
    build = BuildReport(registers, spills, int(kernel.metadata.shared), time.perf_counter() - start)
    if kernel.metadata.shared > target.shared_bytes:
        raise BuildError(shared_memory_failure(target.shared_bytes), build)
    return CompiledSource(source, kernel, build)


def write_source(source: KernelSource, folder: Path) -> Path:
    """Put the text into `folder` under a name made of its content; an existing file is that same text."""
    path = folder / f"emmy_{hashlib.sha256(source.text.encode()).hexdigest()[:16]}.py"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(source.text, encoding="utf-8")
        part.replace(path)
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
