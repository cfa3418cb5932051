"""On a GPU: whatever way a function reaches a weight, and however it changes, its CUDA graph gives what eager gives."""

from __future__ import annotations

import pytest
import torch

import engine
from tests.deploy.ways import CHANGES, VALUES_ONLY, WAYS, followed

HERE = ("closure", "global", "slot", "deque", "bound method", "decorated", "parameter", "buffer", "module in a list")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", HERE)
def test_a_changed_weight_is_followed(way: str) -> None:
    with torch.device("cuda"):
        found = followed(WAYS[way])
    assert found["first"]
    assert [change for change, right in found["right"].items() if not right] == []
    assert found["kernels"] >= len(CHANGES) - len(VALUES_ONLY) - 2
    assert len(found["said"]) == 1


@pytest.mark.timeout(300)
def test_a_weight_made_in_inference_mode_is_followed() -> None:
    with torch.inference_mode():
        x, w = (torch.randn(128, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        call = engine.compile(lambda a: a @ w.t() + 1.0, (x,))
        for _ in range(2):
            assert torch.allclose(call(x), x @ w.t() + 1.0, rtol=2e-2, atol=2e-1)
            w.mul_(-1.0)
        assert len(call.call.deployments) == 1
