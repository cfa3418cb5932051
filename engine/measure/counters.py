"""A hardware metric of a candidate, read with NVIDIA's ncu where that is installed and may read the GPU's counters.

A reading replays the kernel under the profiler and takes seconds, so it is for a few candidates and never for a search.
A metric is named as ncu names it; what it means is ncu's business.
"""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.codegen import render
from engine.ir.json_form import kernel_to_json
from engine.ir.kernel import Kernel
from engine.measure.controls import Controls
from engine.measure.process import child_environment
from engine.vocabulary import Schedule, Target

READ_LIMIT_S = 180.0
_ROOT = str(Path(__file__).resolve().parents[2])
_CODE = (
    f"import sys; sys.path.insert(0, {_ROOT!r}); from engine.measure.counter_child import profile; profile(sys.argv[1])"
)


class CountersError(ValueError):
    """A metric can't be read; the text is one sentence for a person."""


@dataclass(frozen=True, slots=True)
class CounterReader:
    """Reads one metric. `ncu` is the profiler's path."""

    ncu: str
    metric: str

    @classmethod
    def open(cls, metric: str, index: int) -> CounterReader:
        """The reader, once the metric was read of something small on CUDA device `index`. Raises CountersError."""
        ncu = shutil.which("ncu")
        if ncu is None:
            raise CountersError(
                f"--objective ncu:{metric} needs NVIDIA's ncu, which isn't on the PATH: install it with a CUDA toolkit"
            )
        reader = cls(ncu, metric)
        reader._run({"kernel": "", "source": "", "target": asdict(Target()), "index": index}, None)
        return reader

    def read(self, kernel: Kernel, schedule: Schedule, target: Target, index: int, controls: Controls | None) -> float:
        """The metric of one launch on CUDA device `index`; `controls` are the ptxas and file of the schedule.

        Raises CountersError.
        """
        source = render(kernel, schedule, target)
        asked = {"kernel": kernel_to_json(kernel), "source": source.to_json(), "target": asdict(target), "index": index}
        return self._run(asked, controls)

    def _run(self, asked: Mapping[str, object], controls: Controls | None) -> float:
        with tempfile.TemporaryDirectory(prefix="emmy-ncu-") as name:
            folder = Path(name)
            (folder / "sources").mkdir()
            environment = child_environment(folder)
            if controls is not None:
                controls.lay_out(folder / "sources")
                environment |= controls.assembler.environment
            request = folder / "request.json"
            request.write_text(json.dumps({**asked, "folder": str(folder / "sources")}), encoding="utf-8")
            return self._value(self._said(request, environment))

    def _said(self, request: Path, environment: Mapping[str, str]) -> str:
        command = [
            *(self.ncu, "--csv", "--print-units", "base", "--metrics", self.metric),
            *("--nvtx", "--nvtx-include", "emmy/", "--target-processes", "application-only"),
            *(sys.executable, "-P", "-c", _CODE, str(request)),
        ]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            raise CountersError(f"{self.ncu} can't be run: {error.strerror or error}") from None
        try:
            text, _ = process.communicate(timeout=READ_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise CountersError(f"ncu gave no value of {self.metric} within {READ_LIMIT_S:.0f} s") from None
        finally:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return text

    def _value(self, said: str) -> float:
        lines = said.splitlines()
        header = next((at for at, line in enumerate(lines) if '"Metric Value"' in line), None)
        if header is None:
            raise CountersError(self._why_not(lines))
        rows = [row for row in csv.DictReader(lines[header:]) if row.get("Metric Name") == self.metric]
        try:
            values = [float((row["Metric Value"] or "").replace(",", "")) for row in rows]
        except ValueError:
            raise CountersError(f"ncu has no value of {self.metric} for this kernel") from None
        if not values or not all(math.isfinite(value) for value in values):
            raise CountersError(f"ncu has no value of {self.metric} for this kernel")
        return sum(values) / len(values)

    def _why_not(self, lines: list[str]) -> str:
        if any("ERR_NVGPUCTRPERM" in line for line in lines):
            return (
                f"--objective ncu:{self.metric} reads the GPU's counters, which this user may not: ask whoever runs the"
                " machine to allow it (NVIDIA says how under ERR_NVGPUCTRPERM)"
            )
        told = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")]
        last = told[0] if told else next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
        return f"ncu can't read {self.metric} here: {last}"
