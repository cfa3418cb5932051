"""A sampler without a GPU: what it sends is in the environment, for the test that starts it."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict

from engine.measure.channel import ChannelClosed
from engine.measure.child_side import open_channel
from engine.measure.gpu_state import GpuState, Throttle
from engine.measure.sampler import serve


def main() -> None:
    channel = open_channel(*map(int, sys.argv[1:4]))
    looks = iter(range(1, 10_000))
    try:
        first = channel.receive()
        match os.environ.get("FAKE_SAMPLER"):
            case "missing":
                channel.send({"missing": "no NVML here"})
            case "dies":
                os._exit(3)
            case "talks nonsense":
                channel.send({"state": {"temperature": 1}})
            case _:
                state = GpuState(0.0, sm_mhz=1980, throttle=(Throttle.POWER_CAP,), others=("7 python",))
                serve(channel, float(first["period_s"]), lambda: GpuState(**asdict(state) | {"at": float(next(looks))}))
    except ChannelClosed:
        return


if __name__ == "__main__":
    main()
