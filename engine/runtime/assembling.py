"""Another ptxas for the compiles of a block, in a process that otherwise compiles with Triton's own.

Triton reads which ptxas it calls from the environment, and its cache knows a binary by ptxas's version text alone; so
the block has a cache folder of its own. All of that is the process's: one block at a time, and what another thread
compiles meanwhile goes through the same ptxas.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from engine.runtime import _triton_compat
from engine.runtime.compile import BuildError
from engine.runtime.toolchain import ptxas_path
from engine.vocabulary import BuildReport, Failure, FailureKind

_LOCK = threading.Lock()


@contextmanager
def assembling_with(environment: Mapping[str, str], cache: Path, capability: int) -> Iterator[None]:
    """Inside, Triton assembles with the ptxas that `environment` names and keeps binaries in `cache`.

    Raises BuildError where Triton would silently call another one.
    """
    changed = {**environment, "TRITON_CACHE_DIR": str(cache)}
    with _LOCK:
        before = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)
        _triton_compat.forget_ptxas()
        try:
            called = ptxas_path(capability)
            if called not in environment.values():
                raise BuildError(
                    Failure(FailureKind.COMPILE_ERROR, f"Triton calls the ptxas {called or '?'}, not the chosen one"),
                    BuildReport(),
                )
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            _triton_compat.forget_ptxas()
