"""`emmy explain`, `emmy compile` and `emmy run` over a database of a search on a fake GPU, on a machine without one."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from engine.cli import running
from engine.cli.application import main
from engine.cli.bench_report import bench_lines, bench_object
from engine.codegen import offered_schedules
from engine.ir.roofline import Ceilings
from engine.store import Store
from tests.tune.fake_device import CONTEXT, FakeDevice
from tests.tune.rig import linear_gelu_program, tune_with

TEXT = "linear+gelu"


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tuned") / "t.db"
    tune_with(path, FakeDevice(), linear_gelu_program())
    return path


@pytest.fixture(autouse=True)
def _without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.cli.subject_options.this_place", lambda: None)


def leave(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return int(left.value.code or 0)


def test_explain_says_what_decides_every_fork_and_kernel(tuned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("explain", "--code", TEXT, "--db", str(tuned), "--strict-evidence") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == TEXT
    assert "Fake GPU" in lines[1]
    (fork,) = [line for line in lines if line.startswith("FUSE_EPILOGUE_0")]
    assert "assembled graph" in fork
    assert any("measurement" in line and "BLOCK_M=" in line for line in lines)


def test_explain_as_json_names_rows_regimes_and_runners_up(tuned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert leave("explain", "--db", str(tuned), "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["target"], found["context_key"], found["predicted"]) == (TEXT, CONTEXT.key, [])
    with Store.open(tuned, read_only=True) as store:
        (run,) = store.runs()
        rows = {row.id for row in store.recorded_groupings(run.id)}
    assert found["forks"]
    for fork in found["forks"]:
        assert fork["row"] in rows
        assert fork["regime"] == "deploy"
        assert fork["runner_up"]["row"] in rows
    for kernel in found["kernels"]:
        assert kernel["chosen"]["us"] > 0
        assert kernel["chosen"]["regime"] in ("deploy", "ranking")
        assert kernel["lines"][0] == kernel["chosen"]


def test_a_pin_that_cant_be_built_is_told(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(tuned.read_bytes())
    with Store.open(copy) as store:
        kernel = next(kernel for kernel in store.kernels() if kernel.family == "contraction")
        (run,) = store.runs()
        best = min(store.recorded_groupings(run.id), key=lambda row: row.whole_us or 1e9)
        kernel = next(iter(best.grouping.kernel_counts().values()))[0]
        schedule = store.schedules(kernel.key, CONTEXT.key)[0]
        bad = type(schedule).of({**schedule.as_dict(), "NUM_WARPS": 3})
        store.record_pin(kernel.key, bad, CONTEXT.key, author="me")
    assert leave("explain", "--db", str(copy)) == 0
    said = " ".join(capsys.readouterr().out.split())
    sentence = said[said.index("a pin decides nothing here: ") :].split(".")[0]
    assert leave("pins", "--db", str(copy)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert " illegal " in shown
    assert sentence in shown
    written = tmp_path / "written"
    for command in (("compile", "--out", str(written)), ("export", "--python", "-o", str(written))):
        assert leave(*command, "--db", str(copy)) != 0
        complaint = capsys.readouterr().err
        assert sentence in complaint
        assert complaint.count("\n") == 1
    assert not written.exists()


def test_a_pinned_schedule_that_was_never_measured_has_no_time(
    tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(tuned.read_bytes())
    with Store.open(copy) as store:
        (run,) = store.runs()
        best = min(store.recorded_groupings(run.id), key=lambda row: row.whole_us or 1e9)
        kernel = next(iter(best.grouping.kernel_counts().values()))[0]
        measured = store.schedules(kernel.key, CONTEXT.key)
        never = next(one for one in offered_schedules(kernel, store.target(CONTEXT.key)) if one not in measured)
        store.record_pin(kernel.key, never, CONTEXT.key, author="me")
    assert leave("explain", "--db", str(copy)) == 0
    said = capsys.readouterr().out
    assert "not measured as one graph" in said
    assert "no sum of its kernels, no time for the schedule of" in said
    assert leave("export", "--python", "-o", str(tmp_path / "out.py"), "--db", str(copy)) == 0
    text = (tmp_path / "out.py").read_text()
    assert "# Not measured as one graph with these schedules" in text
    assert "Measured there" not in text


def test_a_program_that_nobody_tuned_is_predicted_without_a_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.cli.database.default_database_path", lambda: tmp_path / "none.db")
    assert leave("explain", "--code", "torch.softmax(torch.randn(64, 256), -1)") == 0
    said = capsys.readouterr().out
    assert "for an H200 (sm_90), as no GPU is here" in said
    assert "prediction of the prior" in said
    assert "a fork's predicted us is of the whole program" in said
    assert not (tmp_path / "none.db").exists()
    assert leave("explain") == 2


def test_compile_lists_the_calls_of_libraries_and_says_how_texts_are_launched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.cli.database.default_database_path", lambda: tmp_path / "none.db")
    code = "torch.softmax(torch.cumsum(torch.randn(64, 256), -1), -1)"
    assert leave("compile", "--code", code, "--out", str(tmp_path / "k"), "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [one["ops"] for one in found["called"]] == [["aten.cumsum.default"]]
    (kernel,) = found["kernels"]
    assert [argument["name"] for argument in kernel["arguments"]] == ["in0", "out0"]
    (file,) = (tmp_path / "k").iterdir()
    text = file.read_text()
    assert f"[{tuple(kernel['grid'])}](..., num_warps={kernel['num_warps']}, num_stages=" in text
    assert "#   in0: *fp32, input 0\n#   out0: *fp32, output 0\n" in text
    assert leave("compile", "--code", code, "--out", str(tmp_path / "k")) == 0
    assert "called as it is" in capsys.readouterr().out


def test_an_empty_code_is_no_program(tuned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("explain", "compile", "run", "tune"):
        assert leave(command, "--code", "", "--db", str(tuned)) == 2
        assert '--code "" is no program' in capsys.readouterr().err


def test_an_empty_chip_is_none(tuned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("explain", "compile"):
        assert leave(command, "--target", "", "--db", str(tuned)) == 2
        assert '--target "" names no chip' in capsys.readouterr().err


def test_predictions_are_refused_with_one_sentence(
    tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compile", "--db", str(tuned), "--target", "sm_80", "--out", str(tmp_path), "--strict-evidence"]
    assert leave(*command) == 2
    said = capsys.readouterr().err
    assert said.startswith("emmy: no measurement and no pin decides ")
    assert said.count("\n") == 1


def test_compile_says_that_nothing_was_measured_for_another_chip(
    tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("compile", "--db", str(tuned), "--target", "sm_80", "--out", str(tmp_path), "--json") == 0
    shown = capsys.readouterr()
    assert "nothing of this was measured for sm_80: its schedules are predictions" in shown.err
    assert all(kernel["predicted"] for program in json.loads(shown.out) for kernel in program["kernels"])
    assert all("not measured" in file.read_text() for file in tmp_path.iterdir())


def test_compile_writes_the_sources(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "made" / "here"
    assert leave("compile", "--code", TEXT, "--db", str(tuned), "--out", str(out), "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert not any(kernel["predicted"] for kernel in found["kernels"])
    files = sorted(out.iterdir())
    assert all("\n# decided by: " in file.read_text() for file in files if file.suffix == ".py")
    assert [str(file) for file in files] == sorted(name for kernel in found["kernels"] for name in kernel["files"])
    assert all("@triton.jit" in file.read_text() for file in files)


def test_compile_for_another_chip_goes_by_predictions(
    tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leave("compile", "--db", str(tuned), "--target", "sm_80", "--out", str(tmp_path)) == 0
    assert f"written to {tmp_path}" in capsys.readouterr().out
    assert not any("gdc_wait" in file.read_text() for file in tmp_path.glob("*.py"))


def test_explain_for_a_chip_says_what_compile_writes_for_it(
    tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Times of another chip don't count; the one that is tuned for, named, changes nothing."""
    explained, compiled = {}, {}
    for chip in ("sm_80", "sm_90", ""):
        named = ["--db", str(tuned), *(["--target", chip] if chip else []), "--json"]
        assert leave("explain", *named) == 0
        (explained[chip],) = json.loads(capsys.readouterr().out)
        assert leave("compile", *named, "--out", str(tmp_path / f"for{chip}")) == 0
        (compiled[chip],) = json.loads(capsys.readouterr().out)
        chosen = [kernel["chosen"]["schedule"] for kernel in explained[chip]["kernels"]]
        assert chosen == [kernel["schedule"] for kernel in compiled[chip]["kernels"]]
    assert explained["sm_90"] == explained[""]
    assert (explained["sm_80"]["chip"], explained["sm_80"]["context_key"]) == ("sm_80", "")
    assert explained["sm_80"]["predicted"]
    assert leave("explain", "--db", str(tuned), "--target", "sm_80") == 0
    assert "for sm_80: nothing that was measured counts for it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["compile", "--target", "sm_1"], 2, "it is one of sm_80"),
        (["explain", "--target", "sm_1"], 2, "it is one of sm_80"),
        (["explain", "x", "--code", "y"], 2, "give one of them"),
        (["explain", "--layer", "0"], 2, "name one"),
        (["run", "--peers", "eager"], 2, "add it"),
        (["run", "--bench", "--peers", "eager,nobody"], 2, "not 'nobody'"),
        (["run", "--ab", "BLOCK_M"], 2, "BLOCK_M is no knob value: write NAME=value"),
        (["run"], 2, "needs a CUDA GPU"),
        (["run", "--device", "cuda:1"], 2, "needs a CUDA GPU"),
        (["run", "--device", "1"], 2, "needs a CUDA GPU"),
        (["run", "--device", "gpu"], 2, "it is cuda:0, cuda:1, ..., or its number alone"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_what_cant_be_done_is_one_sentence(
    arguments: list[str],
    code: int,
    sentence: str,
    tuned: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "has_driver", lambda: False)
    assert leave(*arguments, "--db", str(tuned)) == code
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("command", ["explain", "compile", "run"])
def test_an_empty_database_and_none_are_bad_input(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Store.open(tmp_path / "empty.db").close()
    assert leave(command, "--db", str(tmp_path / "empty.db")) == 2
    assert "holds no program" in capsys.readouterr().err
    assert leave(command, "--db", str(tmp_path / "none.db")) == 2
    assert "there is no database at" in capsys.readouterr().err


def windows(us: float, seed: int) -> list[float]:
    draw = random.Random(seed)
    return [us * (1 + 0.01 * (draw.random() - 0.5)) for _ in range(20)]


def an_answer() -> dict[str, Any]:
    """What the child of `emmy run --bench --ab` answers."""
    timed = {"names": ["emmy", "emmy again", "eager"], "windows": [windows(10, 1), windows(10, 2), windows(25, 3)]}
    facts = {"kernel": "k" * 24, "label": "matmul", "count": 2}
    work = {"flops": 2 * 10**9, "bytes": 2 * 10**7, "shape": "512x512", "schedule": {"A": 1}}
    floor = {"floor_us": 5.0, "bound": "memory"}
    two = {"names": ["a", "a again", "b"], "windows": [windows(10, 1), windows(10, 2), windows(9, 3)]}
    return {
        "context": {"gpu": "GPU", "driver": "1", "torch": "2", "triton": "3"},
        "predicted": ["FUSE_0"],
        "notes": ["the ptxas controls of matmul are left out: no"],
        "recorded_us": 9.9,
        "kernels_launched": 4,
        "skipped": {"helion": "it isn't installed"},
        "whole": timed,
        "ceilings": Ceilings(4000.0, (("bf16", 800.0),), 6000.0, 50 << 20, 4600.0, 7000.0).text,
        "kernels": [
            {**facts, **work, **floor, **timed, "peers_run": "op by op"},
            {**facts, **work, **floor, "label": "bad", "failure": "relative error 1"},
        ],
        "ab": [{**facts, "a": {"A": 1}, "b": {"A": 2}, **two}, {**facts, "a": {"A": 1}, "skipped": "no other one"}],
    }


def test_a_bench_is_printed_with_ratios_intervals_and_what_was_skipped() -> None:
    text = "\n".join(bench_lines("program", an_answer(), 200))
    for part in (
        "2.50",
        "slower",
        "x floor",
        "op by op",
        "the floors of its kernels add up to",
        "by memory), and emmy takes",
        "4000 GB/s (6000 GB/s within the L2), and of reading alone, 4600 GB/s (7000 GB/s within the L2)",
        "800 TFLOP/s in bf16",
        "bad: relative error 1",
        "faster",
    ):
        assert part in text
    assert "without helion: it isn't installed" in text
    assert "predicted: FUSE_0" in text
    assert "the ptxas controls of matmul are left out: no" in text
    assert "matmul: no other one" in text


def test_a_bench_as_json_has_the_numbers() -> None:
    found = json.loads(json.dumps(bench_object("program", an_answer()), allow_nan=False))
    eager = found["whole"]["peers"]["eager"]
    assert eager["low"] < 2.5 < eager["high"]
    assert eager["verdict"] == "slower"
    assert found["kernels"][0]["bound"] == "memory"
    assert found["kernels"][0]["peers_run"] == "op by op"
    assert found["kernels"][0]["times_floor"] == pytest.approx(2.0, rel=0.01)
    assert found["kernels"][1]["failure"] == "relative error 1"
    assert found["ab"][0]["verdict"] == "faster"
    assert found["ab"][1]["skipped"] == "no other one"
