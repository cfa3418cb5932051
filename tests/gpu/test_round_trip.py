"""What a person pins on the screen is what runs, and what is exported runs without this package.

EMMY_TEST_TUNED names a database that was tuned on this GPU with these versions, such as one of a model's layer; a copy
of it is used, and of its programs the first, or the first whose text has EMMY_TEST_PROGRAM. Without it a small program
is tuned here.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from engine.capture import parse_target
from engine.capture.binding import bind_target
from engine.capture.target import ModelTarget
from engine.codegen import illegal_because, render
from engine.deploy import Source
from engine.deploy.deployment import Deployment
from engine.deploy.evidence import KernelChoice
from engine.deploy.execution import CapturedRunner
from engine.deploy.signatures import Deployed, deploy_call
from engine.runtime import read_context
from engine.session import TuningSession
from engine.store import Candidate, Store, StoredRun
from engine.tune import Settings
from engine.vocabulary import Schedule, Status
from tests.gpu.on_screen import pin_with_keys, unpin_with_keys

CODE = (
    "F.gelu(F.linear(torch.randn(2048, 1024, dtype=torch.bfloat16), torch.randn(4096, 1024, dtype=torch.bfloat16),"
    " torch.randn(4096, dtype=torch.bfloat16)))"
)
ROOT = Path(__file__).parents[2]
ALONE = Path(__file__).with_name("run_alone.py")
EMMY = [sys.executable, "-c", "import sys; from engine.cli import main; sys.exit(main())"]
PROFILED = re.compile(r"^ *(\S+) \((\d+), (\d+), (\d+)\)x\((\d+), (\d+), (\d+)\)", re.MULTILINE)
"""A launch as ncu prints it: name, grid, block."""
SAME_OUTPUT = 5e-3
"""Relative: a library may take another kernel for its products in another process."""
SAME_TIME = 0.05

Launch = tuple[str, tuple[int, ...], int]
"""Name, grid, and threads a block."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A tuned program: a copy of its database, and the run that tuned it."""

    path: Path
    run: StoredRun

    @property
    def arguments(self) -> list[str]:
        """How a command names the program."""
        text = self.run.target
        named = shlex.split(text) if isinstance(parse_target(text), ModelTarget) else ["--code", text]
        return [*named, "--db", str(self.path)]


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    path = tmp_path_factory.mktemp("round_trip") / "tune.db"
    given = os.environ.get("EMMY_TEST_TUNED", "")
    if given:
        copy_of(Path(given), path)
    else:
        with TuningSession.tune(CODE, database=path, settings=Settings(patience=5)) as session:
            session.start()
            assert session.wait(300)
            assert session.failure is None
    found = subject_in(path, read_context(0).key, os.environ.get("EMMY_TEST_PROGRAM", ""))
    if found is None:
        pytest.skip(f"{given} holds no such program that was tuned on this GPU with these versions")
    return found


def copy_of(database: Path, path: Path) -> None:
    """A copy with what another process may still have in its write-ahead log."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as one, closing(sqlite3.connect(path)) as two:
        one.backup(two)


def subject_in(path: Path, context_key: str, text: str) -> Subject | None:
    """The first program of this context whose text has `text`, with its newest run; its database loses its pins."""
    with Store.open(path) as store:
        runs = [run for run in store.runs() if run.context_key == context_key and text in run.target]
        for stored in store.pins():
            store.unpin(stored.pin.kernel_key, stored.context_key)
    return Subject(path, [run for run in runs if run.target == runs[0].target][-1]) if runs else None


def deployed(subject: Subject) -> tuple[Deployed, list[torch.Tensor]]:
    """The program built and checked as a deployment does it now, and its inputs."""
    text = subject.run.target
    bound = bind_target(parse_target(text), "cuda:0")
    with torch.no_grad():
        entry = deploy_call(bound.function, bound.args, bound.kwargs, frozenset(), subject.path, False, text=text)
    leaves = pytree.tree_leaves((bound.args, bound.kwargs))
    return entry, entry.inputs([leaf for leaf in leaves if isinstance(leaf, torch.Tensor)])


def launched(entry: Deployed, folder: Path) -> Counter[Launch]:
    """What torch's profiler sees of one run of the program."""
    assert isinstance(entry.runner, CapturedRunner)
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    for _ in range(2):  # the first makes the profiler ready
        with torch.profiler.profile(activities=kinds) as profile:
            entry.runner.plan.launch()
            torch.cuda.synchronize()
    trace = folder / "trace.json"
    profile.export_chrome_trace(str(trace))
    return traced(json.loads(trace.read_text()))


def traced(trace: dict[str, Any]) -> Counter[Launch]:
    """The kernels of a trace of torch's profiler."""
    kernels = [(event["name"], event["args"]) for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    return Counter((name, tuple(args["grid"]), _threads(args["block"])) for name, args in kernels)


def profiled(text: str) -> Counter[Launch]:
    """The kernels that ncu prints."""
    found = [(name, [int(size) for size in sizes]) for name, *sizes in PROFILED.findall(text)]
    return Counter((name, tuple(sizes[:3]), _threads(sizes[3:])) for name, sizes in found)


def _threads(block: Sequence[int]) -> int:
    x, y, z = block
    return x * y * z


def launch_of(chosen: Deployment, item: KernelChoice, schedule: Schedule) -> Launch:
    """How a launch of the kernel with this schedule looks."""
    source = render(item.kernel, schedule, chosen.target, pdl=chosen.pdl)
    return source.entry, tuple(source.grid), 32 * source.num_warps


def costliest(chosen: Deployment) -> KernelChoice:
    """The generated kernel that takes the most of the program's time."""
    tuned = [item for item in chosen.kernels if item.chosen is not None]
    return max(tuned, key=lambda item: item.count * ((item.chosen.us if item.chosen else None) or 0.0))


def visibly_other(chosen: Deployment, item: KernelChoice, row: Candidate) -> bool:
    """Whether a measured row is legal and launched in another way than what is chosen now."""
    schedule = Schedule.of(row.schedule)
    if row.status != Status.OK or row.us is None or row.context != chosen.context_key:
        return False
    if illegal_because(item.kernel, schedule, chosen.target):
        return False
    return launch_of(chosen, item, schedule) != launch_of(chosen, item, chosen.schedules[item.kernel.key])


def emmy(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*EMMY, *arguments], capture_output=True, text=True, timeout=400, check=False, cwd=ROOT)


def emmy_run(subject: Subject, item: KernelChoice, *more: str) -> tuple[Schedule, float, str]:
    """The schedule that `emmy run` timed for the kernel, the program's time in us, and all that it printed."""
    asked = ["--bench", "--peers", "eager", "--kernel", item.kernel.key, "--json", *more]
    done = emmy("run", *subject.arguments, *asked)
    if "--profile" in more and "ncu" in done.stderr:  # it may lack the right to read counters
        print(f"\nwithout ncu: {done.stderr.strip()[-300:]}")
    else:
        assert done.returncode == 0, done.stderr[-3000:]
    (found,) = json.loads(done.stdout.splitlines()[-1])
    (kernel,) = found["kernels"]
    assert "failure" not in kernel
    return Schedule.of(kernel["schedule"]), found["whole"]["us"], done.stdout


def pinned(subject: Subject) -> list[Schedule]:
    with Store.open(subject.path, read_only=True) as store:
        return [stored.pin.schedule for stored in store.pins()]


@pytest.mark.timeout(900)
def test_a_pin_of_the_screen_runs_and_the_winner_comes_back(subject: Subject, tmp_path: Path) -> None:
    first = deployed(subject)[0]
    chosen, item = first.deployment, costliest(first.deployment)
    key, winners = item.kernel.key, first.deployment.schedules
    usual, ran = launch_of(chosen, item, winners[key]), launched(first, tmp_path)
    schedule, before_us, _ = emmy_run(subject, item)
    assert schedule == winners[key]
    assert ran[usual] >= item.count, f"{usual} is not among {ran}"

    other = pin_with_keys(subject.path, key, lambda row: visibly_other(chosen, item, row))
    assert pinned(subject) == [other]
    second = deployed(subject)[0]
    decided = next(one for one in second.deployment.kernels if one.kernel.key == key)
    assert decided.chosen is not None
    assert decided.chosen.source is Source.PIN
    assert second.deployment.schedules == {**winners, key: other}
    schedule, pinned_us, said = emmy_run(subject, item, *(["--profile"] if shutil.which("ncu") else []))
    assert schedule == other
    unlike = launch_of(second.deployment, item, other)
    seen = {"torch's profiler": launched(second, tmp_path), "ncu": profiled(said)}
    for how, launches in seen.items():
        if launches or how != "ncu":
            assert launches[unlike] == ran[unlike] + item.count, f"{how} saw {launches}"
            assert launches[usual] == ran[usual] - item.count, f"{how} saw {launches}"
            print(f"\n{how}: {unlike} in place of {usual}")

    unpin_with_keys(subject.path, key)
    assert pinned(subject) == []
    third = deployed(subject)[0]
    assert third.deployment.schedules == winners
    schedule, after_us, _ = emmy_run(subject, item)
    assert schedule == winners[key]
    assert launched(third, tmp_path) == ran
    print(f"\n{item.kernel.label}: winner {before_us:.2f} us, pinned {pinned_us:.2f} us, winner {after_us:.2f} us")


def run_alone(folder: Path) -> dict[str, Any]:
    """Run the exported module in a process that has torch and triton; -S leaves the hooks of editable installs out."""
    places = [place for place in sys.path if place and Path(place).is_dir() and not (Path(place) / "engine").is_dir()]
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(ALONE), json.dumps([str(folder), places])],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        cwd=folder,
        env={**os.environ, "TRITON_CACHE_DIR": str(folder / "cache")},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.timeout(900)
def test_an_exported_program_runs_without_this_package(subject: Subject, tmp_path: Path) -> None:
    entry, inputs = deployed(subject)
    torch.save({"inputs": inputs, "outputs": list(entry.runner(inputs))}, tmp_path / "call.pt")
    done = emmy("export", subject.run.id, "--python", "-o", str(tmp_path / "tuned.py"), "--db", str(subject.path))
    assert done.returncode == 0, done.stderr[-3000:]
    _, here_us, _ = emmy_run(subject, costliest(entry.deployment))
    alone = run_alone(tmp_path)
    assert alone["same_form"]
    assert max(alone["errors"]) < SAME_OUTPUT
    ratio = alone["us"] / here_us
    outputs = "equal bit by bit" if alone["alike"] else f"off by {max(alone['errors']):.1e}"
    print(f"\nalone {alone['us']:.2f} us, emmy run {here_us:.2f} us, ratio {ratio:.4f}; outputs {outputs}")
    assert ratio == pytest.approx(1.0, abs=SAME_TIME)


def test_what_profilers_print_is_read() -> None:
    event = {"cat": "kernel", "name": "contraction", "args": {"grid": [48, 1, 1], "block": [128, 1, 1]}}
    trace = {"traceEvents": [event, event, {"cat": "cpu_op", "name": "aten::mm"}]}
    assert traced(trace) == {("contraction", (48, 1, 1), 128): 2}
    line = "contraction (48, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 9.0"
    assert profiled(f"==PROF== Connected\n  {line}\n    Section: none") == {("contraction", (48, 1, 1), 128): 1}
