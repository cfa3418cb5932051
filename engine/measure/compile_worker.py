"""A compile process: sources in, binaries in Triton's cache folder and build reports out.

It loads triton, but neither torch nor CUDA.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from engine.codegen import KernelSource
from engine.measure.channel import ChannelClosed, Message
from engine.measure.child_side import open_channel
from engine.runtime import BuildError, DiskFull, compile_source
from engine.vocabulary import Target


def main(read_fd: int, write_fd: int, parent: int) -> None:
    """Compile one source after the other until the channel closes."""
    channel = open_channel(read_fd, write_fd, parent)
    try:
        channel.send({"ready": True})
        while True:
            channel.send(_answer(channel.receive()))
    except ChannelClosed:
        return


def _answer(request: Message) -> Message:
    try:
        compiled = compile_source(
            KernelSource.from_json(request["source"]),
            Target(**request["target"]),
            Path(request["folder"]),
            request["ptxas_level"],
        )
    except DiskFull as error:
        return {"full": str(error)}
    except BuildError as error:
        return {"failure": asdict(error.failure), "build": asdict(error.build)}
    return {"build": asdict(compiled.build)}
