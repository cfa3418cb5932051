"""What the tests on a real GPU share: they skip without one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from engine.codegen import illegal_because, render
from engine.measure import CudaDevice
from engine.measure.cuda import CudaSettings


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))


@pytest.fixture(scope="module")
def device() -> Iterator[CudaDevice]:
    """A device with the real code generator."""
    with CudaDevice(CudaSettings(index=0, compilers=12), render, illegal_because) as opened:
        yield opened


@pytest.fixture(scope="module")
def lawless() -> Iterator[CudaDevice]:
    """The same, with no schedule called illegal: what legality would refuse must be caught by what comes after."""
    with CudaDevice(CudaSettings(index=0, compilers=12), render, lambda *_: None) as opened:
        yield opened
