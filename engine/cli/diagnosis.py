"""What the findings of the probe mean for a person: which part is there, and what a missing one costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.extras import install_text

COLUMNS = ("part", "state", "found", "cost")
INSTALL = install_text("tune")
WITHOUT = "tuning is off; browsing and replay work"


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of the machine. `state` is "ok", "missing", "broken" or the like; `cost` is "" where nothing is lost."""

    part: str
    state: str
    found: str
    cost: str


def diagnose(probed: dict[str, Any]) -> list[Finding]:
    """The findings on GPU, driver, torch, Triton, ptxas and NVML, from the probe's object."""
    return [
        *_gpus(probed),
        _driver(probed),
        _torch(probed["torch"]),
        _part(probed["triton"], "triton", f"{WITHOUT}; {INSTALL}"),
        _part(probed["ptxas"], "ptxas", f"{WITHOUT}; it comes with Triton: {INSTALL}", "ptxas of Triton's own"),
        _nvml(probed["nvml"], driver=bool(probed["driver"])),
    ]


def gpus_of(probed: dict[str, Any]) -> list[dict[str, Any]]:
    """The GPUs as NVML or, where it isn't there, as torch describes them."""
    return probed["nvml"].get("gpus") or probed["torch"].get("gpus") or []


def _gpus(probed: dict[str, Any]) -> list[Finding]:
    gpus = gpus_of(probed)
    if not gpus:
        if probed["nvml"].get("gpus") == []:
            cost = f"{WITHOUT}; CUDA sees none of this machine's GPUs: look at CUDA_VISIBLE_DEVICES"
        elif probed["driver"]:
            cost = f"{WITHOUT}; a driver is loaded, so {INSTALL} and look again"
        else:
            cost = f"{WITHOUT}; run `emmy tune` on a machine with an NVIDIA GPU and open its database here"
        return [Finding("GPU", "missing", "", cost)]
    return [_gpu(index, gpu) for index, gpu in enumerate(gpus)]


def _gpu(index: int, gpu: dict[str, Any]) -> Finding:
    busy = gpu["processes"]
    found = f"{gpu['name']}, compute capability {gpu['capability']}, {gpu['memory'] / 2**30:.0f} GiB"
    if not busy:
        return Finding(f"cuda:{index}", "ok", found, "")
    others = f"{busy} process{'es' if busy > 1 else ''} on it"
    return Finding(f"cuda:{index}", "shared", f"{found}, {others}", "other work on the GPU makes times noisy")


def _driver(probed: dict[str, Any]) -> Finding:
    version = probed["nvml"].get("driver") or probed["driver"]
    return Finding("driver", "ok", version, "") if version else Finding("driver", "missing", "", WITHOUT)


def _torch(torch: dict[str, Any]) -> Finding:
    if "error" in torch or torch["gpus"]:
        return _part(torch, "torch", f"{WITHOUT}; {INSTALL}")
    found = f"{torch['version']} (CUDA {torch['cuda']})" if torch["cuda"] else f"{torch['version']} (no CUDA)"
    why = "it sees no GPU" if torch["cuda"] else "this build of torch has no CUDA"
    return Finding("torch", "no GPU", found, f"{WITHOUT}: {why}")


def _nvml(nvml: dict[str, Any], *, driver: bool) -> Finding:
    if "error" not in nvml:
        return Finding("NVML", "ok", "answers", "")
    state = "broken" if driver and nvml["error"] != "not installed" else "missing"
    return Finding("NVML", state, nvml["error"], "clocks, temperature and other processes on the GPU are not recorded")


def _part(part: dict[str, Any], name: str, cost: str, whole_name: str = "") -> Finding:
    if "error" not in part:
        return Finding(name, "ok", part["version"] or "version unknown", "")
    if part["error"] == "not installed":
        return Finding(name, "missing", "", f"no {whole_name or name}: {cost}")
    return Finding(name, "broken", part["error"], cost)
