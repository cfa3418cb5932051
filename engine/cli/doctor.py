"""`emmy doctor`: what this machine has, and what each missing part costs."""

from __future__ import annotations

import json as json_format
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import typer

from engine.cli import probe
from engine.cli.controls_diagnosis import diagnose_controls
from engine.cli.database import telling_left_out
from engine.cli.diagnosis import COLUMNS, Finding, diagnose
from engine.cli.errors import FAILED, refuse, sentence_of
from engine.cli.options import AcfToCheck, Database, Json, Ptxas
from engine.cli.output import json_text, records, table_lines, terminal_width
from engine.data import SHIPPED_DEMO
from engine.store import Store, StoreError, check_database, default_database_path
from engine.typed_path import BadPath, typed_path

PROBE_LIMIT_S = 120
BROKEN = "broken"


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    app.command("doctor")(doctor)


def doctor(database: Database = None, acf: AcfToCheck = None, ptxas: Ptxas = None, json: Json = False) -> None:
    """Say what this machine has (GPU, driver, torch, Triton, ptxas, database), and what each missing part costs.

    With --acf it asks a ptxas which of the files fit this GPU, and whether they reach the code.
    The exit code is 1 if the database is there and can't be read; a missing part is no failure.
    """
    for path in (*(acf or ()), *([ptxas] if ptxas else [])):
        if not typed_path(path).exists():
            raise refuse(
                f"there is nothing at {path}: name a file or folder of controls with --acf, a ptxas with --ptxas"
            )
    kept = _database(database or default_database_path())
    probed = _probed()
    findings = [*diagnose(probed), *diagnose_controls(probed, acf or (), ptxas), kept, _demo()]
    rows = [(finding.part, finding.state, finding.found, finding.cost) for finding in findings]
    if json:
        typer.echo(json_text(records(COLUMNS, rows)))
    else:
        width = terminal_width(sys.stdout)
        typer.echo("\n".join(table_lines(COLUMNS[:3], [row[:3] for row in rows], width)))
        costs = [(finding.part, finding.cost) for finding in findings if finding.cost]
        if costs:
            typer.echo("\n" + "\n".join(table_lines(("what is missing", "what it costs"), costs, width)))
    if kept.state == BROKEN:
        raise typer.Exit(FAILED)


def _probed() -> dict[str, Any]:
    """Run the probe in a child; a child that dies or hangs makes torch the suspect, because only it can."""
    command = [sys.executable, "-P", probe.__file__]
    try:
        child = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_LIMIT_S, check=False, env=dict(os.environ)
        )
    except subprocess.TimeoutExpired:
        return _silent(f"no answer within {PROBE_LIMIT_S} s")
    except OSError as error:
        return _silent(f"{sys.executable} can't be started ({error.strerror})")
    try:
        found: dict[str, Any] = json_format.loads(child.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return _silent(f"the process that looks died with exit code {child.returncode}")
    return found


def _silent(reason: str) -> dict[str, Any]:
    error = {"error": f"can't be looked at: {reason}"}
    return {"nvml": error, "driver": None, "torch": error, "triton": error, "ptxas": error}


def _database(path: Path) -> Finding:
    try:
        path = typed_path(path)
        if not path.exists():
            return Finding("database", "none yet", str(path), "nothing to browse yet; the first `emmy tune` makes it")
        with Store.open(path, read_only=True) as store, telling_left_out(store):
            check_database(path)
            found = f"{path}, {len(store.runs())} runs, {path.stat().st_size / 1e6:.1f} MB"
    except (OSError, BadPath, StoreError) as error:
        return Finding("database", BROKEN, str(path), sentence_of(error))
    return Finding("database", "ok", found, "")


def _demo() -> Finding:
    if SHIPPED_DEMO.is_file():
        return Finding("demo", "ok", f"{SHIPPED_DEMO.stat().st_size / 1e6:.1f} MB, packed", "")
    return Finding("demo", "missing", "", "--demo has nothing to show; reinstall emmy-tui")
