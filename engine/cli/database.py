"""Which database a command works on: the one that was named, the demo's copy, or the user's own."""

from __future__ import annotations

from pathlib import Path

from engine.cli.errors import refuse, refusing
from engine.data import DemoMissing, demo_database
from engine.store import default_database_path


def chosen_database(named: Path | None, demo: bool) -> Path:
    """Its path; the file need not exist. Leaves with exit code 2 if the choice contradicts itself or can't be had."""
    if demo and named is not None:
        raise refuse("--demo brings its own database: leave --db or --demo away")
    with refusing(DemoMissing):
        return demo_database() if demo else named or default_database_path()
