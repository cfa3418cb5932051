"""No torch, no GPU, no such device: one sentence each, with the way out."""

from __future__ import annotations

import pytest
import torch

from engine.measure import DeviceError, open_device


@pytest.mark.parametrize("name", ["", "gpu", "cuda:x", "cuda:-1", "replay", "cuda:0 "])
def test_an_unknown_name(name: str) -> None:
    with pytest.raises(DeviceError, match="is no device to tune on"):
        open_device(name)


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.measure.opening.find_spec", lambda name: None)
    with pytest.raises(
        DeviceError, match=r"torch and triton are not installed.*pip install '\.\[tune\]' in Emmy's folder.*--demo"
    ):
        open_device("cuda:0")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_how_to_go_on() -> None:
    with pytest.raises(DeviceError) as caught:
        open_device("cuda:0")
    text = str(caught.value)
    assert "no NVIDIA driver" in text or "torch sees no CUDA GPU" in text
    assert "emmy-tui --demo" in text
    assert "\n" not in text
