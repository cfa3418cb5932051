"""The process that compiles for `emmy compile`: sources in; PTX, SASS and sizes out. It needs no GPU."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.codegen import KernelSource
from engine.measure import ChannelClosed, Message, open_channel
from engine.runtime import BuildError, CompiledSource, compile_source
from engine.vocabulary import Target

COMPILE_LIMIT_S = 120.0
DISASSEMBLE_LIMIT_S = 60.0


def main(read_fd: int, write_fd: int, parent: int) -> None:
    """Answer one request, {"sources", "target", "sass": bool, "environment", "folder"}, with {"kernels": [...]}.

    The ptxas that the environment names, if one, is what Triton calls; the folder holds the controls that sources name.
    """
    channel = open_channel(read_fd, write_fd, parent)
    os.environ.pop("TRITON_STORE_BINARY_ONLY", None)  # the text of a kernel is asked for, not its binary alone
    try:
        request = channel.receive()
        os.environ.update(request["environment"])
        done: list[Message] = []
        for number, text in enumerate(request["sources"], 1):
            step = f"compiling kernel {number} of {len(request['sources'])}"
            channel.send({"step": step, "limit_s": COMPILE_LIMIT_S + DISASSEMBLE_LIMIT_S})
            done.append(_compiled(KernelSource.from_json(text), Target(**request["target"]), request))
        channel.send({"kernels": done})
    except ChannelClosed:
        return


def _compiled(source: KernelSource, target: Target, request: Message) -> Message:
    try:
        compiled = compile_source(source, target, Path(request["folder"]))
    except BuildError as error:
        return {"error": error.failure.cause, "build": asdict(error.build)}
    ptx = _text(compiled, "ptx")
    sass = _disassembled(compiled) if request["sass"] else ""
    return {"ptx": ptx, "sass": sass, "build": asdict(compiled.build)}


def _text(compiled: CompiledSource, kind: str) -> str:
    found = compiled.kernel.asm.get(kind, "")
    return found if isinstance(found, str) else bytes(found).decode(errors="replace")


def _disassembled(compiled: CompiledSource) -> str:
    """The binary as SASS text; "" where neither cuobjdump nor nvdisasm is there."""
    binary = compiled.kernel.asm.get("cubin", b"")
    for name, options in (("cuobjdump", ["--dump-sass"]), ("nvdisasm", ["--print-code"])):
        path = _tool(name)
        if not path or not binary:
            continue
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(binary)
            file.flush()
            command = [path, *options, file.name]
            try:
                ended = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    timeout=DISASSEMBLE_LIMIT_S,
                    check=False,
                    env=dict(os.environ),
                )
            except (OSError, subprocess.TimeoutExpired):
                continue
            if ended.returncode == 0 and ended.stdout.strip():
                return ended.stdout
    return ""


def _tool(name: str) -> str:
    """The tool that Triton brings, or the one of a CUDA toolkit on the path; "" if there is none."""
    try:
        from triton import knobs

        found: Any = getattr(knobs.nvidia, name)
        return str(found.path)
    except (ImportError, AttributeError, RuntimeError):
        import shutil

        return shutil.which(name) or ""
