"""The process of `emmy run`: the deployed program and its peers on one GPU, checked, then timed in turns.

Everything that is compared lives in one process and is timed in one sitting, each as a CUDA graph of many launches, so
that neither clocks nor launch overhead favour one. Windows go back to the parent, which does the statistics.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from engine.capture import CaptureError, parse_target
from engine.capture.binding import BoundCall, bind_target
from engine.codegen import illegal_because, is_generated, render
from engine.deploy.attention_peer import body_of_peers
from engine.deploy.comparing import changed_schedule, read_knobs
from engine.deploy.deployment import Deployment, DeploymentError, NoEvidenceError
from engine.deploy.evidence import KernelChoice
from engine.deploy.execution import CapturedRunner, assembling
from engine.deploy.peers import Peer, peer_of
from engine.deploy.signatures import Deployed, Unsuitable, deploy_call
from engine.ir.kernel import Kernel
from engine.ir.roofline import Ceilings, floor_us
from engine.measure import ChannelClosed, Message, open_channel
from engine.measure.checking import Rejected, check_once
from engine.runtime import (
    BuildError,
    Case,
    Launch,
    TimingPlan,
    allow_scratch_memory,
    bind_extern,
    bind_launch,
    compile_source,
    load_launcher,
    measure_ceilings,
    one_line,
    prepare_case,
    probe_us,
    read_context,
    time_in_turns,
)
from engine.store import StoreError
from engine.vocabulary import Schedule

PLAN = TimingPlan(window_ms=2.0, windows=30, warmup_ms=60.0)
STEP_LIMIT_S = 600.0
AUTOTUNE_LIMIT_S = 3600.0
SEED = 0

Tell = Callable[[str, float], None]


def main(read_fd: int, write_fd: int, parent: int) -> None:
    """Answer one request: see `Bench.answer`."""
    channel = open_channel(read_fd, write_fd, parent)
    os.environ.pop("TRITON_STORE_BINARY_ONLY", None)  # torch.compile's kernels are looked at as text
    try:
        request = channel.receive()
        try:
            answer = answer_to(request, lambda step, limit_s: channel.send({"step": step, "limit_s": limit_s}))
        except NoEvidenceError as error:
            answer = {"error": str(error), "missing": True}
        except (CaptureError, DeploymentError, StoreError, BuildError, Unsuitable) as error:
            answer = {"error": str(error)}
        except torch.OutOfMemoryError:
            answer = {"error": "the program doesn't fit into the GPU's memory"}
        except RuntimeError as error:
            answer = {"error": f"the program can't be run: {one_line(str(error))}"}
        channel.send(answer)
    except ChannelClosed:
        return


def answer_to(request: Message, tell: Tell) -> Message:
    """Deploy, check, and, if asked for, time the whole, its kernels and two schedules against each other."""
    if not torch.cuda.is_available():
        return {"error": "running a program needs a CUDA GPU, and torch sees none here"}
    device = torch.device("cuda", int(request["device"]))
    torch.cuda.set_device(device)
    allow_scratch_memory(device)
    load_launcher()
    tell("building the program", STEP_LIMIT_S)
    bound = bind_target(parse_target(request["text"]), str(device))
    ours = _deployed(request, bound, pins="pinned" not in request["peers"])
    bench = Bench(request, bound, ours, device, tell)
    return bench.answer()


def profile(path: str) -> None:
    """For a profiler: launch the deployed program a few times. `path` holds a request as JSON."""
    request = json.loads(Path(path).read_text(encoding="utf-8"))
    allow_scratch_memory(torch.device("cuda", int(request["device"])))
    entry = _deployed(request, bind_target(parse_target(request["text"]), f"cuda:{request['device']}"), pins=True)
    torch.cuda.synchronize()
    nvtx: Any = torch.cuda.nvtx
    nvtx.range_push("emmy")
    _runner(entry).plan.launch()
    torch.cuda.synchronize()
    nvtx.range_pop()


def _deployed(request: Message, bound: BoundCall, *, pins: bool) -> Deployed:
    with torch.no_grad():
        return deploy_call(
            bound.function,
            bound.args,
            bound.kwargs,
            frozenset(),
            Path(request["database"]),
            bool(request["strict"]),
            pins=pins,
            text=request["text"],
            ptxas=Path(request["ptxas"]) if request["ptxas"] else None,
        )


def _runner(entry: Deployed) -> CapturedRunner:
    assert isinstance(entry.runner, CapturedRunner)
    return entry.runner


class Bench:
    """One program with all that is compared."""

    def __init__(self, request: Message, bound: BoundCall, ours: Deployed, device: torch.device, tell: Tell) -> None:
        self._request = request
        self._bound = bound
        self._ours = ours
        self._device = device
        self._tell = tell
        self._folder = Path(request["folder"])
        self._peers: list[Peer] = []
        self._skipped: dict[str, str] = {}
        for name in request["peers"]:
            peer = peer_of(name)
            if isinstance(peer, str):
                self._skipped[name] = peer
            else:
                self._peers.append(peer)

    @property
    def _deployment(self) -> Deployment:
        return self._ours.deployment

    def answer(self) -> Message:
        """What the parent prints. Windows are us a launch, the i-th of all taken in round i; the first is ours, the
        second ours again, which says what the noise is."""
        chosen = self._deployment
        answer: Message = {
            "context": asdict(read_context(self._device.index or 0)),
            "predicted": chosen.predicted,
            "notes": list(chosen.notes),
            "recorded_us": chosen.us,
            "kernels_launched": len(chosen.grouping.calls),
            "skipped": self._skipped,
        }
        if self._request["bench"]:
            answer["whole"] = self._whole()
            self._tell("measuring ceilings", STEP_LIMIT_S)
            ceilings = measure_ceilings(self._device)
            answer["ceilings"] = ceilings.text
            answer["kernels"] = [self._kernel(item, ceilings) for item in self._named()]
            answer["skipped"] = self._skipped
        if self._request["ab"]:
            answer["ab"] = [self._two_schedules(item) for item in self._named() if item.chosen is not None]
        return answer

    def _named(self) -> list[KernelChoice]:
        text = str(self._request["kernel"]).lower()
        kernels = self._deployment.kernels
        names = (f"{k.kernel.label} {k.kernel.family} {k.kernel.shape_text} {k.kernel.key}".lower() for k in kernels)
        return [kernel for kernel, name in zip(kernels, names, strict=True) if text in name]

    def _whole(self) -> Message:
        names, launches = ["emmy", "emmy again"], [_runner(self._ours).plan.launch] * 2
        if "pinned" in self._request["peers"]:
            pinned = _deployed(self._request, self._bound, pins=True)
            if pinned.deployment.schedules == self._deployment.schedules:
                self._skipped["pinned"] = "no pin in force changes what runs"
            else:
                names.append("pinned")
                launches.append(_runner(pinned).plan.launch)
        for peer in self._peers:
            self._tell(f"building the peer {peer.name}", AUTOTUNE_LIMIT_S)
            made = peer.of_call(self._bound)
            self._add(names, launches, peer, made)
        return self._timed("the whole program", names, launches)

    def _add(self, names: list[str], launches: list[Launch], peer: Peer, launch: Launch) -> None:
        """Run it a few times, as compilers finish late; one that fails is named and left out."""
        try:
            for _ in range(3):
                launch()
            torch.cuda.synchronize()
        except torch.OutOfMemoryError:
            self._skipped.setdefault(peer.name, "it doesn't fit into the GPU's memory")
            return
        except Exception as error:
            self._skipped.setdefault(peer.name, f"it failed: {type(error).__name__}: {one_line(str(error))}")
            return
        names.append(peer.name)
        launches.append(launch)

    def _timed(self, what: str, names: Sequence[str], launches: Sequence[Launch]) -> Message:
        self._tell(f"timing {what}", STEP_LIMIT_S)
        for launch in launches:
            launch()
        torch.cuda.synchronize()
        windows = time_in_turns(launches, PLAN, [probe_us(launch) for launch in launches], SEED)
        return {"names": list(names), "windows": windows}

    def _kernel(self, item: KernelChoice, ceilings: Ceilings) -> Message:
        kernel = item.kernel
        floor, bound = floor_us(kernel, ceilings)
        row: Message = {
            **{"kernel": kernel.key, "label": kernel.label or kernel.family, "shape": kernel.shape_text},
            **{"count": item.count, "flops": kernel.flops, "bytes": kernel.bytes_moved},
            **{"floor_us": floor, "bound": bound, "schedule": item.schedule.as_dict() if item.schedule else None},
        }
        self._tell(f"building {row['label']}", AUTOTUNE_LIMIT_S)
        case = prepare_case(kernel, SEED, self._device)
        ours = self._launch(kernel, item.schedule, case)
        if wrong := _wrong(ours, case):
            return {**row, "failure": wrong}
        names, launches = ["emmy", "emmy again"], [ours, ours]
        body, way = body_of_peers(kernel.body, case)
        for peer in self._peers:
            self._add(names, launches, peer, peer.of_body(body, case.inputs))
        return {**row, "peers_run": way, **self._timed(str(row["label"]), names, launches)}

    def _launch(self, kernel: Kernel, schedule: Schedule | None, case: Case) -> Launch:
        if not is_generated(kernel) or schedule is None:
            return bind_extern(kernel.body, case.inputs, case.outputs)
        chosen = self._deployment
        source = render(kernel, schedule, chosen.target)
        with nullcontext(self._folder) if chosen.controls is None else assembling(chosen) as folder:
            return bind_launch(compile_source(source, chosen.target, folder), case.inputs, case.outputs)

    def _two_schedules(self, item: KernelChoice) -> Message:
        """The chosen schedule and the one with other knobs; a sentence where there is no other one."""
        kernel, first = item.kernel, item.schedule
        assert first is not None
        row: Message = {"kernel": kernel.key, "label": kernel.label or kernel.family, "a": first.as_dict()}
        second = changed_schedule(first, read_knobs(self._request["ab"]))
        if isinstance(second, str):
            return {**row, "skipped": second}
        row["b"] = second.as_dict()
        if illegal := illegal_because(kernel, second, self._deployment.target):
            return {**row, "skipped": illegal}
        self._tell(f"building both of {row['label']}", STEP_LIMIT_S)
        case = prepare_case(kernel, SEED, self._device)
        try:
            a, b = self._launch(kernel, first, case), self._launch(kernel, second, case)
        except BuildError as error:
            return {**row, "skipped": str(error)}
        for launch in (a, b):
            if wrong := _wrong(launch, case):
                return {**row, "skipped": wrong}
        return {**row, **self._timed(str(row["label"]), ["a", "a again", "b"], [a, a, b])}


def _wrong(launch: Launch, case: Case) -> str:
    """What is wrong with a kernel's outputs, or ""."""
    try:
        check_once(launch, case, case.references)
    except Rejected as rejected:
        return rejected.failure.cause
    return ""
