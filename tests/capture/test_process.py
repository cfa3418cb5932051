from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.capture import TargetOptions, capture, parse_target
from engine.capture.errors import (
    ERROR_TYPES,
    CaptureCrashError,
    CaptureError,
    CaptureTimeoutError,
    ModelsMissingError,
    NotACallError,
    TargetMissingError,
    TorchMissingError,
    UserCodeError,
)

ADD = "torch.add(torch.randn(4, 8, device='cuda'), 1)"


def test_a_program_comes_back_from_a_child_in_a_folder_with_an_engine_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engine.py").write_text("print('theirs')\nSIZE = 24\n")
    (tmp_path / "json.py").write_text("raise RuntimeError('not this one')\n")
    monkeypatch.chdir(tmp_path)
    program = capture("import engine\ntorch.add(torch.randn(4, engine.SIZE), 1)", device="cuda:0")
    assert program.graph.output_specs()[0].shape == (4, 24)
    assert program.device == "cuda:0"
    assert program.target.startswith("import engine")


def test_a_model_comes_back_from_a_child_with_its_line_and_its_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = capture("gpt2", TargetOptions(layer=0, seq_len=16))
    assert program.target == "gpt2 --layer 0 --dtype bfloat16 --seq-len 16 --batch 1"
    assert "random" in program.notes[0]
    assert parse_target(program.target) == parse_target("gpt2", TargetOptions(layer=0, seq_len=16))


def test_a_file_comes_back_from_a_child(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import torch\ndef f(x): return x.exp()\ndef example_inputs(): return torch.ones(3)\n")
    program = capture(f"{path}:f", TargetOptions())
    assert [op.kind for op in program.graph.ops] == ["input", "exp"]
    with pytest.raises(TargetMissingError, match="no function or module `g`"):
        capture(f"{path}:g", TargetOptions())


def test_bad_text_starts_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(NotACallError):
        capture("x = 1")


def test_an_error_of_the_child_keeps_its_kind_and_text() -> None:
    with pytest.raises(UserCodeError, match=r"^The code raised ValueError: one\.$"):
        capture("print('noise')\nraise ValueError('one\\ntwo')\nf()")


@pytest.mark.slow
def test_code_that_hangs_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    code = (
        f"import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\n"
        f"time.sleep(600)\nf()"
    )
    with pytest.raises(CaptureTimeoutError, match="longer than 10 s"):
        capture(code, timeout_s=10)
    pid = int(mark.read_text())
    for _ in range(100):
        if not _runs(pid):
            break
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_child_that_dies_is_said_to_have_died() -> None:
    with pytest.raises(CaptureCrashError, match="killed by signal 6"):
        capture("import os; os.abort(); f()")


def _hide(package: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children started from here on can't import the package, wherever it is installed."""
    (folder / "sitecustomize.py").write_text(f"import sys; sys.modules[{package!r}] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(folder) + os.pathsep + os.environ.get("PYTHONPATH", ""))


def test_without_torch_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _hide("torch", tmp_path, monkeypatch)
    with pytest.raises(TorchMissingError, match=r"pip install '\.\[tune\]'"):
        capture(ADD)


def test_without_transformers_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _hide("transformers", tmp_path, monkeypatch)
    with pytest.raises(ModelsMissingError, match=r"pip install '\.\[models\]'"):
        capture("gpt2", TargetOptions(layer=0))


def test_every_error_is_listed_and_is_a_capture_error() -> None:
    assert all(issubclass(kind, CaptureError) for kind in ERROR_TYPES.values())
    assert set(CaptureError.__subclasses__()) | {CaptureError} == set(ERROR_TYPES.values())


def test_code_that_never_ends_dies_with_a_killed_parent(tmp_path: Path) -> None:
    mark = tmp_path / "running"
    loop = (
        f"import pathlib; pathlib.Path({str(mark)!r}).write_text(str(__import__('os').getpid()))\nwhile True: pass\nf()"
    )
    house = str(Path(__file__).parents[2])
    code = f"import sys; sys.path.append({house!r}); from engine.capture import capture; capture({loop!r})"
    parent = subprocess.Popen([sys.executable, "-P", "-c", code])
    assert _soon(mark.exists, 60)
    parent.kill()
    parent.wait()
    assert _soon(lambda: not _alive(int(mark.read_text() or 0)), 10)


def _soon(holds: Callable[[], bool], limit_s: float) -> bool:
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        if holds():
            return True
        time.sleep(0.05)
    return False


def _alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
