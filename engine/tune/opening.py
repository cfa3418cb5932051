"""From the devices' names that a person gave to one device: a GPU, several of one host, or those of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from engine.measure import Controls, Device, DeviceError, Starts
from engine.measure.ray_device import RAY_PREFIX, open_ray
from engine.tune.devices import KERNELS_AT_ONCE, Fleet


def opened(
    open_one: Callable[..., Device],
    named: str,
    jobs: int | None,
    controls: Controls | None = None,
    *,
    cold_l2: bool = False,
) -> Device:
    """The device, or a fleet of all that are named, which share the compile processes of one host.

    "ray:ADDRESS" names every GPU of a Ray cluster that is free. Raises DeviceError.
    """
    if controls is not None:
        open_one = partial(open_one, controls=controls)
    if cold_l2:
        open_one = partial(open_one, cold_l2=True)
    if named.startswith(RAY_PREFIX):
        return _fleet(open_ray(named.removeprefix(RAY_PREFIX), open_one, jobs))
    names = [name.strip() for name in named.split(",")]
    first = open_one(names[0], jobs=jobs)
    if len(names) == 1:
        return first
    devices = [first]
    try:
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise DeviceError(f"{twice[0]} is named twice: name each device once")
        for name in names[1:]:
            devices.append(open_one(name, jobs=jobs, beside=first))
    except BaseException:
        _close(devices)
        raise
    return _fleet(devices)


def start(device: Device) -> None:
    """Something will be measured: what takes seconds to start does so from now on."""
    if isinstance(device, Starts):
        device.start()


def _fleet(devices: list[Device]) -> Fleet:
    try:
        return Fleet(devices, KERNELS_AT_ONCE)
    except BaseException:
        _close(devices)
        raise


def _close(devices: list[Device]) -> None:
    for device in devices:
        device.close()
