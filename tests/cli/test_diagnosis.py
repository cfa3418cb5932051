"""What a missing part costs, said for machines of several kinds."""

from __future__ import annotations

from typing import Any

import pytest

from engine.cli.diagnosis import Finding, diagnose
from engine.extras import install_text

MISSING = {"error": "not installed"}
BARE: dict[str, Any] = {"nvml": MISSING, "driver": None, "torch": MISSING, "triton": MISSING, "ptxas": MISSING}
H200 = {"name": "NVIDIA H200", "capability": "9.0", "memory": 150_754_820_096, "processes": 0}
WORKSTATION: dict[str, Any] = {
    "nvml": {"driver": "570.133.20", "gpus": [H200]},
    "driver": "570.133.20",
    "torch": {"version": "2.11.0+cu130", "cuda": "13.0", "gpus": [H200]},
    "triton": {"version": "3.6.0"},
    "ptxas": {"version": "12.8.93", "path": "/somewhere/ptxas"},
}


def by_part(probed: dict[str, Any]) -> dict[str, Finding]:
    return {finding.part: finding for finding in diagnose(probed)}


def test_a_whole_workstation_costs_nothing() -> None:
    found = by_part(WORKSTATION)
    assert {finding.state for finding in found.values()} == {"ok"}
    assert {finding.cost for finding in found.values()} == {""}
    assert found["cuda:0"].found == "NVIDIA H200, compute capability 9.0, 140 GiB"
    assert found["torch"].found == "2.11.0+cu130"


def test_a_bare_machine_says_what_each_part_costs() -> None:
    found = by_part(BARE)
    assert all(finding.cost for finding in found.values())
    cost = "no torch: tuning is off; browsing and replay work"
    assert found["torch"].cost == f"{cost}; {install_text('tune')}"
    assert "machine with an NVIDIA GPU" in found["GPU"].cost


@pytest.mark.parametrize(
    ("change", "part", "state", "words"),
    [
        ({"nvml": MISSING, "torch": MISSING}, "GPU", "missing", "a driver is loaded"),
        ({"nvml": {"driver": "5", "gpus": []}, "torch": MISSING}, "GPU", "missing", "CUDA_VISIBLE_DEVICES"),
        ({"torch": {"version": "2.13.0+cpu", "cuda": None, "gpus": []}}, "torch", "no GPU", "has no CUDA"),
        ({"torch": {"version": "2.11.0", "cuda": "13.0", "gpus": []}}, "torch", "no GPU", "it sees no GPU"),
        ({"triton": {"error": "can't be imported: libz"}}, "triton", "broken", "tuning is off"),
        ({"nvml": {"error": "NVML Shared Library Not Found"}}, "NVML", "broken", "not recorded"),
        ({"nvml": {"driver": "5", "gpus": [{**H200, "processes": 2}]}}, "cuda:0", "shared", "noisy"),
    ],
)
def test_a_part_that_is_not_right(change: dict[str, Any], part: str, state: str, words: str) -> None:
    finding = by_part({**WORKSTATION, **change})[part]
    assert finding.state == state
    assert words in finding.cost


def test_a_gpu_that_only_torch_sees_is_shown() -> None:
    assert by_part({**WORKSTATION, "nvml": MISSING})["cuda:0"].state == "ok"
