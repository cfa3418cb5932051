"""What an exception of the compiler or the driver means for a candidate: a kind, and its cause in one line.

A cause is normalized (no addresses, paths, process ids), so that equal causes are equal texts and form one cluster.
"""

from __future__ import annotations

import errno
import re
from pathlib import Path

from engine.disk import is_scarce
from engine.vocabulary import Failure, FailureKind

CAUSE_LIMIT = 200

_NOISE = (
    (re.compile(r"0x[0-9a-fA-F]+"), "0x…"),
    (re.compile(r"(?<![\w.])/(?:[\w.+@-]+/)+[\w.+@-]*"), "…"),
    (re.compile(r"\bemmy_[0-9a-f]{16}\b"), "kernel"),
    (re.compile(r"\bpid[ =_:]*\d+"), "pid"),
    (re.compile(r"\s+"), " "),
)
_BY_TEXT = (
    (FailureKind.OUT_OF_MEMORY, re.compile(r"out of memory|CUBLAS_STATUS_ALLOC_FAILED", re.I)),
    (
        FailureKind.ILLEGAL_ACCESS,
        re.compile(
            r"illegal memory access|misaligned address|invalid address space|illegal instruction|invalid pc"
            r"|unspecified launch failure|hardware stack error|device-side assert|illegal address|an illegal",
            re.I,
        ),
    ),
    (
        FailureKind.SHARED_MEMORY,
        re.compile(r"out of resource: shared|too much shared data|shared memory, Required", re.I),
    ),
    (FailureKind.THREADS, re.compile(r"out of resource: threads|too many threads", re.I)),
    (
        FailureKind.REGISTERS,
        re.compile(r"register allocation failed|too many resources requested|too many registers", re.I),
    ),
)
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded", re.I)
_CERTAIN = ("CompilationError", "OutOfResources", "OutOfMemoryError")
"""Names of exceptions that say of themselves what is wrong, and it is no disk."""
_PTXAS_LINE = re.compile(r"^ptxas\S*\s*(?:.*?;)?\s*(?:fatal|error)\s*:\s*(.+)$", re.M)


class DiskFull(Exception):
    """There was no space for what a compile writes: nobody's fault, and it may come back. The text says where."""


def no_space(error: BaseException, folder: Path) -> bool:
    """Whether it is the disk of `folder`, or a quota, that stopped a compile or a load.

    Assembler and C compiler say it in their text at best: then a disk as good as full is reason enough to try again,
    except where the error is one of a kind, or of the source's text, and would come again.
    """
    errno_of = getattr(error, "errno", None)
    if errno_of in (errno.ENOSPC, errno.EDQUOT) or _NO_SPACE.search(str(error)):
        return True
    if type(error).__name__ in _CERTAIN or any(pattern.search(str(error)) for _, pattern in _BY_TEXT):
        return False
    return is_scarce(folder)


def one_line(text: str) -> str:
    """The text on one line, without what differs between equal failures, at most CAUSE_LIMIT characters."""
    for pattern, replacement in _NOISE:
        text = pattern.sub(replacement, text)
    text = text.strip()
    return text if len(text) <= CAUSE_LIMIT else text[: CAUSE_LIMIT - 1] + "…"


def shared_memory_failure(limit_bytes: int) -> Failure:
    """The needed size is in the build report; the cause names only the limit, so that all such failures are one."""
    return Failure(FailureKind.SHARED_MEMORY, f"needs more than the {limit_bytes} bytes of shared memory of a block")


def threads_failure(limit: int) -> Failure:
    return Failure(FailureKind.THREADS, f"needs more than the {limit} threads of a block")


def failure_of(error: BaseException, otherwise: FailureKind = FailureKind.COMPILE_ERROR) -> Failure:
    """Classify an exception by its text, since neither Triton nor torch gives its errors distinct types.

    `otherwise` is the kind of an exception that nothing more is known about.
    """
    text = str(error).strip()
    name = type(error).__name__
    kind = next((kind for kind, pattern in _BY_TEXT if pattern.search(text)), otherwise)
    if name == "OutOfMemoryError":
        kind = FailureKind.OUT_OF_MEMORY
    if found := _PTXAS_LINE.search(text):
        return Failure(kind, one_line(f"ptxas: {found.group(1)}"))
    if name == "CompilationError":
        text = _last_line(text)
    elif text:
        text = text.splitlines()[0]
    return Failure(kind, one_line(f"{name}: {text}" if text else name))


def _last_line(text: str) -> str:
    """A Triton CompilationError ends with its reason, after the source and a caret."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and set(line.strip()) != {"^"}]
    return lines[-1] if lines else ""
