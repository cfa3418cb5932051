"""A CUDA device whose compilers and benchmark process are scripts, and a way to see which processes are left."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from engine.codegen import Argument, KernelSource
from engine.ir.builder import GraphBuilder
from engine.ir.graph import TensorSpec
from engine.ir.kernel import Kernel
from engine.measure.compile_pool import CompileLimits
from engine.measure.cuda import CudaDevice, CudaSettings
from engine.vocabulary import Schedule, Target

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def script(name: str) -> tuple[str, ...]:
    """The command of a fake process of this folder."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.measure.{name} import main; main()"
    return (sys.executable, "-c", code)


def settings(**changes: object) -> CudaSettings:
    fake = CudaSettings(
        index=0,
        compilers=2,
        worker_command=script("fake_worker"),
        stem_command=(),
        compile_command=script("fake_compiler"),
        compile_limits=CompileLimits(low_s=0.5, high_s=1.0),
    )
    return dataclasses.replace(fake, **changes)  # type: ignore[arg-type]


def open_fake(**changes: object) -> CudaDevice:
    return CudaDevice(settings(**changes), render, illegal_because)


def render(kernel: Kernel, schedule: Schedule, target: Target) -> KernelSource:
    """The text is what the fake processes do; DO=render-error is refused here."""
    if schedule["DO"] == "render-error":
        raise ValueError("no such tile")
    return KernelSource(str(schedule), "entry", (Argument("x", "input", 0, "*fp32"),), (1, 1, 1), 4, 1)


def illegal_because(kernel: Kernel, schedule: Schedule, target: Target) -> str | None:
    return "it is forbidden" if schedule["DO"] == "illegal" else None


def do(what: str, number: int = 0) -> Schedule:
    return Schedule.of({"DO": what, "NUMBER": number})


def a_kernel(rows: int = 64) -> Kernel:
    build = GraphBuilder()
    left = build.input(TensorSpec.contiguous((rows, 32), "float32"), "x")
    right = build.input(TensorSpec.contiguous((32, 16), "float32"), "w")
    return Kernel("contraction", build.build(build.add("matmul", left, right)), "matmul")


def an_engine(folder: Path, lines: str) -> tuple[subprocess.Popen[str], list[str]]:
    """A process that does what the lines say and then waits, and the words that they print; for who is going to end it.

    They find `a_kernel`, `do`, `open_fake` and `Regime`.
    """
    program = folder / "program.py"
    program.write_text(
        "import sys, time\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.measure.rig import a_kernel, do, open_fake\n"
        "from engine.vocabulary import Regime\n"
        f"{lines}"
        "time.sleep(1000)\n"
    )
    command = [sys.executable, str(program)]
    engine = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert engine.stdout is not None
    return engine, engine.stdout.readline().split()


def processes_about(folder: Path) -> list[int]:
    """Live processes whose command line or environment names the folder, from /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in text:
            found.append(int(entry.name))
    return found


def until(condition: Callable[[], object], limit_s: float = 20.0) -> None:
    """Wait for what other threads and processes do."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


def settled(folder: Path, count: int = 0, limit_s: float = 10.0) -> bool:
    """Whether only `count` processes about the folder are left, given that a killed one takes a moment to go."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if len(processes_about(folder)) == count:
            return True
        time.sleep(0.02)
    return False
