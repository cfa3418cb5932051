"""What `emmy doctor` says of ptxas controls: is there a ptxas that takes them, which files fit, do they reach the code.

It asks ptxas itself, on the CPU. That controls reach a kernel on the GPU is proved by each run that searches them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.cli.diagnosis import Finding, gpus_of
from engine.measure import Assembler, Controls, ControlsError, Judgement, find_assembler, judge, read_controls

PART = "ptxas controls"
OFF = "the layer of ptxas controls is off; everything else works"
USUAL_CAPABILITY = 90
SHOWN = 6


def diagnose_controls(probed: dict[str, Any], files: Sequence[Path], ptxas: Path | None) -> list[Finding]:
    """Findings on the assembler and on the files; each says what is missing and what to do about it."""
    try:
        assembler = find_assembler(ptxas)
    except ControlsError as error:
        return [Finding(PART, "off", "", f"{OFF}: {error}")]
    found = f"ptxas {assembler.version} takes controls, sha256 {assembler.sha256[:12]}, {assembler.path}"
    if not files:
        return [Finding(PART, "ready", found, f"{OFF}: no file was named; `emmy doctor --acf PATH` looks at some")]
    capability, chip = _chip(probed)
    try:
        judgement = judge(Controls(assembler, read_controls(files)), capability)
    except ControlsError as error:
        return [Finding(PART, "ready", found, ""), Finding("ACF files", "broken", "", f"{OFF}: {error}")]
    return [Finding(PART, "ok", found, ""), _files(assembler, judgement, chip)]


def _files(assembler: Assembler, judgement: Judgement, chip: str) -> Finding:
    fitting = [item for item in judgement.each if item.accepted]
    rejected = [item for item in judgement.each if not item.accepted]
    found = f"{len(fitting)} of {len(judgement.each)} fit ptxas {assembler.version} and {chip}"
    if fitting:
        found += f"; {judgement.changing} of them change the code of a probe"
    named = [f"{item.name}: {item.reason}" for item in rejected[:SHOWN]]
    if len(rejected) > SHOWN:
        named.append(f"and {len(rejected) - SHOWN} more")
    refused = f"not usable here: {'; '.join(named)}" if named else ""
    if judgement.off_because:
        return Finding("ACF files", "off", found, f"{OFF}: {judgement.off_because}")
    return Finding("ACF files", "ok" if not rejected else "some", found, refused)


def _chip(probed: dict[str, Any]) -> tuple[int, str]:
    gpus = gpus_of(probed)
    told = str(gpus[0]["capability"]) if gpus else ""
    if re.fullmatch(r"\d+\.\d", told):
        return int(told.replace(".", "")), f"{gpus[0]['name']}"
    return USUAL_CAPABILITY, f"sm_{USUAL_CAPABILITY} (no GPU is here to ask for)"
