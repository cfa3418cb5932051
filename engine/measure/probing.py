"""What a GPU is, from a process that loads no torch and ends with its answer."""

from __future__ import annotations

from collections.abc import Sequence

from engine.measure.channel import ChannelClosed, Message
from engine.measure.device import DeviceError
from engine.measure.process import Nursery

PROBE_LIMIT_S = 60.0


def probed(nursery: Nursery, command: Sequence[str], index: int) -> Message:
    """Context and target of the GPU with this number. Raises DeviceError."""
    try:
        child = nursery.start(command, "probe")
    except OSError as error:
        raise DeviceError(f"the GPU can't be probed: {error}") from None
    try:
        child.channel.send({"device": index})
        answer = child.channel.receive(PROBE_LIMIT_S)
    except TimeoutError:
        raise DeviceError(f"the driver said nothing for {PROBE_LIMIT_S:.0f} s") from None
    except ChannelClosed:
        raise DeviceError(f"the process that probes the GPU died of {child.death()}: {child.last_line()}") from None
    finally:
        nursery.bury(child)
    if "unusable" in answer:
        raise DeviceError(str(answer["unusable"]))
    return answer
