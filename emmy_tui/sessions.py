"""The sessions that a screen steers. Loaded on the thread that opens one, so that the first frame doesn't wait."""

from __future__ import annotations

from pathlib import Path

from engine.session import TuningSession
from engine.tune import Settings


def replayed(database: Path, *, patience: int, seed: int, pace: float) -> TuningSession:
    """Search again over a recorded database; `pace` is seconds a candidate."""
    return TuningSession.replay(database, settings=Settings(patience=patience, seed=seed), pace=pace)


def tuned(code: str, database: Path, *, patience: int, seed: int, device: str, command: str) -> TuningSession:
    """Tune an expression on a GPU of this machine."""
    settings = Settings(patience=patience, seed=seed)
    return TuningSession.tune(code, database=database, settings=settings, device=device, command=command)
