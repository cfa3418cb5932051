"""The kernels of a deployment as files: Triton source, and with a compiler PTX, SASS and what a kernel occupies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType

from engine.codegen import Argument, KernelSource, is_generated, render
from engine.deploy.asking import ask_child
from engine.deploy.deployment import Deployment, kernel_name
from engine.deploy.evidence import PREDICTED, Source
from engine.deploy.python_module import comment
from engine.ir.kernel import Kernel
from engine.measure import Controls
from engine.vocabulary import Schedule, Target

SHARED_BYTES: Mapping[int, int] = MappingProxyType(
    {80: 166_912, 86: 101_376, 87: 166_912, 89: 101_376, 90: 232_448, 100: 232_448, 103: 232_448, 120: 101_376}
)
"""Most shared memory of one block in bytes, by compute capability (CUDA programming guide, technical specifications,
less the KiB that the system keeps of each block)."""
_TARGET = re.compile(r"sm_?(\d{2,3})[af]?")


@dataclass(frozen=True, slots=True)
class Listed:
    """One kernel with its text. `ptx`, `sass` and the sizes are there once it is compiled; `failure` says why not."""

    kernel: Kernel
    schedule: Schedule
    source: KernelSource
    decided_by: Source = Source.FIRST
    ptx: str = ""
    sass: str = ""
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    code_bytes: int | None = None
    failure: str = ""

    @property
    def stem(self) -> str:
        """A file's name without its ending: what the kernel is called, and its key."""
        label = re.sub(r"[^A-Za-z0-9]+", "_", self.kernel.label or self.kernel.family).strip("_")[:60]
        return f"{label}_{self.kernel.key[:8]}"

    @property
    def predicted(self) -> bool:
        """Whether no measurement and no pin says that the schedule is a good one."""
        return self.decided_by in PREDICTED

    @property
    def decided_text(self) -> str:
        """What decided the schedule, and that it was not measured where that is so."""
        return f"{self.decided_by.value}, not measured" if self.predicted else self.decided_by.value

    @property
    def launch_comment(self) -> str:
        """What a launch of the text needs, as comments: schedule, grid, warps, stages, and each argument in order."""
        source = self.source
        facts = [
            f"{self.kernel.label or self.kernel.family} {self.kernel.shape_text}, kernel {self.kernel.key}",
            f"schedule: {self.schedule}",
            f"decided by: {self.decided_text}",
            f"launch: {source.entry}[{source.grid}](..., num_warps={source.num_warps}, num_stages={source.num_stages}"
            + (", launch_pdl=True)" if source.pdl else ")"),
            *([f"ptxas controls: {source.acf}"] if source.acf else []),
            "arguments, in order; a pointer is the last 16-byte aligned address up to a tensor's first element:",
            *(f"  {_argument_text(argument)}" for argument in source.arguments),
        ]
        return "".join(f"{comment(fact)}\n" for fact in facts)

    def write(self, folder: Path) -> list[Path]:
        """Write what there is of it; returns the files. Raises OSError."""
        files = []
        for ending, text in (("py", self.launch_comment + self.source.text), ("ptx", self.ptx), ("sass", self.sass)):
            if text:
                files.append(folder / f"{self.stem}.{ending}")
                files[-1].write_text(text, encoding="utf-8")
        return files


def _argument_text(argument: Argument) -> str:
    """Name, type, what it is; of a descriptor also the matrix that it describes (elements)."""
    text = f"{argument.name}: {argument.type}, {argument.kind} {argument.index}"
    if not argument.block:
        return text
    sizes = f"shape {argument.shape}, strides {argument.strides}, offset {argument.offset}, block {argument.block}"
    return f"{text}, TensorDescriptor of {sizes}"


@dataclass(frozen=True, slots=True)
class Called:
    """A library's call that stands in the plan as it is: no text is generated for it."""

    kernel: Kernel
    count: int

    @property
    def ops(self) -> tuple[str, ...]:
        """The operations of its body, in order."""
        return tuple(str(op.attribute("op", op.kind)) for op in self.kernel.body.ops if op.kind == "extern")


def called_kernels(deployment: Deployment) -> list[Called]:
    """The calls of libraries in the order in which they are first made."""
    return [Called(item.kernel, item.count) for item in deployment.kernels if not is_generated(item.kernel)]


def listed_kernels(deployment: Deployment) -> list[Listed]:
    """The generated kernels in the order in which they are first launched, as text."""
    schedules = deployment.schedules
    return [
        Listed(
            item.kernel,
            schedules[item.kernel.key],
            render(item.kernel, schedules[item.kernel.key], deployment.target, pdl=deployment.pdl),
            item.chosen.source if item.chosen is not None else Source.FIRST,
        )
        for item in deployment.kernels
        if is_generated(item.kernel)
    ]


def compiled_kernels(
    kernels: list[Listed],
    target: Target,
    *,
    sass: bool,
    controls: Controls | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Listed]:
    """The same kernels with PTX, sizes and, if asked for, SASS. Needs triton and no GPU. Raises ChildError.

    With `controls` their ptxas assembles, with the files that schedules name.
    """
    request = {
        "sources": [item.source.to_json() for item in kernels],
        "target": asdict(target),
        "sass": sass,
        "environment": controls.assembler.environment if controls is not None else {},
    }
    prepare = controls.lay_out if controls is not None else None
    answer = ask_child("engine.deploy.assembly_child", request, tell, prepare)
    return [_with(item, found) for item, found in zip(kernels, answer["kernels"], strict=True)]


def _with(item: Listed, found: Mapping[str, object]) -> Listed:
    build = found.get("build")
    sizes = build if isinstance(build, dict) else {}
    return replace(
        item,
        ptx=str(found.get("ptx", "")),
        sass=str(found.get("sass", "")),
        registers=sizes.get("registers"),
        spills=sizes.get("spills"),
        shared_bytes=sizes.get("shared_bytes"),
        code_bytes=sizes.get("code_bytes"),
        failure=f"{kernel_name(item.kernel)}: {found['error']}" if "error" in found else "",
    )


def named_target(name: str, like: Target) -> Target:
    """The chip that a name such as sm_90 means; sizes that the name doesn't say are those of `like`.

    Raises ValueError for a name that no CUDA chip of 8.0 and above has.
    """
    found = _TARGET.fullmatch(name.strip().lower())
    capability = int(found[1]) if found else 0
    if capability not in SHARED_BYTES:
        known = ", ".join(f"sm_{number}" for number in SHARED_BYTES)
        raise ValueError(f"--target {name!r} is not known: it is one of {known}")
    if capability == like.capability:
        return like
    shared = SHARED_BYTES[capability]
    return replace(like, capability=capability, shared_bytes=shared, shared_bytes_per_multiprocessor=shared + 1024)
