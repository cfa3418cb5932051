"""What the probe reads out of other programs' texts, and that it answers on a machine without a GPU."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.cli import probe


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.133.20  Sun Mar 16 2025\nGCC 12", "570.133.20"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build", "580.65.06"),
        ("nothing of the kind", None),
    ],
)
def test_driver_version(text: str, version: str | None) -> None:
    assert probe.driver_version(text) == version


def test_ptxas_version() -> None:
    said = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 12.8, V12.8.93\nBuild cuda_12"
    assert probe.ptxas_version(said) == "12.8.93"
    assert probe.ptxas_version("error") is None


def test_a_broken_library_is_told_from_a_missing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> object:
        raise ImportError("libcudart.so.13: cannot open shared object file", name="libcudart")

    monkeypatch.setattr(probe, "import_module", broken)
    assert probe.probe()["torch"]["error"].startswith("can't be imported: libcudart")
    monkeypatch.setattr(probe, "import_module", lambda name: __import__("no_such_module_" + name))
    assert probe.probe()["nvml"] == {"error": "not installed"}


def test_a_chosen_ptxas_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(tmp_path / "ptxas"))
    monkeypatch.setattr(probe, "import_module", lambda name: __import__("no_such_module_" + name))
    assert "does not run" in probe.probe()["ptxas"]["error"]


GPUS = {b"0000:0a:00.0": "A100", b"0000:0b:00.0": "H200", b"0000:0c:00.0": "L4"}
"""As NVML counts them: by their place on the bus."""


def nvml() -> SimpleNamespace:
    return SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: len(GPUS),
        nvmlDeviceGetHandleByIndex=lambda index: list(GPUS)[index],
        nvmlDeviceGetHandleByPciBusId=lambda place: place,
        nvmlDeviceGetCudaComputeCapability=lambda handle: (9, 0),
        nvmlDeviceGetName=lambda handle: GPUS[handle],
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=2**30),
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [],
        nvmlSystemGetDriverVersion=lambda: "580.65.06",
    )


def cuda(status: int, seen: list[bytes]) -> SimpleNamespace:
    """The driver's library, as it sees these GPUs."""

    def put(reference: Any, value: int) -> int:
        reference._obj.value = value
        return 0

    def place(buffer: Any, size: int, device: Any) -> int:
        buffer.value = seen[device.value]
        return 0

    return SimpleNamespace(
        cuInit=lambda flags: status,
        cuDeviceGetCount=lambda count: put(count, len(seen)),
        cuDeviceGet=lambda device, index: put(device, index),
        cuDeviceGetPCIBusId=place,
    )


@pytest.mark.parametrize(
    ("status", "seen", "names"),
    [
        (0, [b"0000:0c:00.0", b"0000:0a:00.0"], ["L4", "A100"]),
        (probe.NO_DEVICE, [], []),
        (999, [], ["A100", "H200", "L4"]),
    ],
    ids=["some, in another order", "all are hidden", "the driver is broken"],
)
def test_gpus_are_those_that_cuda_sees(
    monkeypatch: pytest.MonkeyPatch, status: int, seen: list[bytes], names: list[str]
) -> None:
    modules = {"pynvml": nvml()}
    monkeypatch.setattr(probe, "import_module", lambda name: modules.get(name) or __import__("no_such_" + name))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: cuda(status, seen))
    assert [gpu["name"] for gpu in probe.probe()["nvml"]["gpus"]] == names


def test_it_runs_as_a_script_in_a_folder_with_other_modules(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit('the wrong torch')")
    command = [sys.executable, "-P", probe.__file__]
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert set(json.loads(said.stdout.splitlines()[-1])) == {"nvml", "driver", "torch", "triton", "ptxas"}
