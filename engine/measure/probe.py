"""The process that says which GPU and which versions are there, before torch is loaded anywhere.

A run whose every candidate is known ends before the benchmark process has started; this is all that it waits for.
"""

from __future__ import annotations

from dataclasses import asdict

from engine.measure.child_side import open_channel
from engine.runtime import read_context, read_target


def main(read_fd: int, write_fd: int, parent: int) -> None:
    """Answer one message that names the device, with its context and target or with what is wrong."""
    channel = open_channel(read_fd, write_fd, parent)
    index = int(channel.receive()["device"])
    try:
        channel.send({"context": asdict(read_context(index)), "target": asdict(read_target(index))})
    except Exception as error:
        channel.send({"unusable": str(error) or type(error).__name__})
