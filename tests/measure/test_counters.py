"""Reading a metric with ncu: what it is asked, what its answers mean, and each way in which it can't be read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from engine.codegen import offered_schedules
from engine.measure import Controls, ControlsFile, CounterReader, CountersError, counters, read_assembler
from engine.vocabulary import Schedule, Target
from tests.deploy.samples import matmul

from .fake_ncu import METRIC, fake_ncu
from .fake_ptxas import fake_ptxas


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path / 'cuda'}{os.pathsep}/usr/bin:/bin")
    monkeypatch.delenv("TRITON_PTXAS_PATH", raising=False)
    return tmp_path / "cuda"


def test_a_metric_is_read_of_one_launch(folder: Path, tmp_path: Path) -> None:
    log = fake_ncu(folder)
    reader = CounterReader.open(METRIC, 0)
    kernel = matmul()
    first = next(offered_schedules(kernel, Target()))
    warps = int(first.as_dict()["NUM_WARPS"])
    assert reader.read(kernel, first, Target(), 1, None) == 10.0 * warps
    assembler = read_assembler(fake_ptxas(tmp_path / "tools"))
    file = ControlsFile("one", b"slower")
    controlled = Schedule.of({**first.as_dict(), "ACF": file.sha256})
    assert reader.read(kernel, controlled, Target(), 1, Controls(assembler, (file,))) == 10.0 * warps + 0.5
    tried, plain, applied = (json.loads(line) for line in log.read_text().splitlines())
    assert (tried["kernel"], plain["kernel"]) == (False, True)
    assert plain["words"][:5] == ["--csv", "--print-units", "base", "--metrics", METRIC]
    assert f"{file.sha256}.acf" in applied["acf"]
    assert (plain["ptxas"], applied["ptxas"]) == ("", assembler.path)


def test_thousands_are_numbers(folder: Path) -> None:
    fake_ncu(folder)
    reader = CounterReader.open(METRIC, 0)
    assert reader._value(f'"Metric Name","Metric Value"\n"{METRIC}","1,234.5"') == 1234.5


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("forbidden", "reads the GPU's counters, which this user may not: ask whoever runs the machine"),
        ("unknown", f"ncu can't read {METRIC} here: Failed to find metric"),
        ("empty", f"ncu has no value of {METRIC} for this kernel"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(folder: Path, behaviour: str, words: str) -> None:
    fake_ncu(folder, behaviour)
    with pytest.raises(CountersError, match=words):
        CounterReader.open(METRIC, 0)


def test_a_profiler_that_hangs_is_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_ncu(folder, "hangs")
    monkeypatch.setattr(counters, "READ_LIMIT_S", 1.0)
    with pytest.raises(CountersError, match=r"gave no value of .* within 1 s"):
        CounterReader.open(METRIC, 0)


def test_without_ncu_it_says_where_it_comes_from(folder: Path) -> None:
    with pytest.raises(CountersError, match="needs NVIDIA's ncu, which isn't on the PATH"):
        CounterReader.open(METRIC, 0)
