"""The sessions that a screen steers, each in a process of its own. Loaded on the thread that opens one, so that the
first frame doesn't wait.

`log` is the fd of the log, which takes what such a process prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from emmy_tui.source import Again, Session
from engine.session import SeparateSession, TuningSession
from engine.tune import Retune, Settings


def replayed(
    database: Path, *, patience: int, seed: int, pace: float, kernels: Sequence[str] = (), log: int | None = None
) -> SeparateSession:
    """Search again over a recorded database, or over these kernels of it alone; `pace` is seconds a candidate."""
    settings = Settings(patience=patience, seed=seed, surrogate=True)
    return SeparateSession(TuningSession.replay(database, settings=settings, pace=pace, kernels=kernels), log=log)


def tuned(
    code: str, database: Path, *, patience: int, seed: int, device: str, command: str, log: int | None = None
) -> SeparateSession:
    """Tune an expression on a GPU of this machine."""
    settings = Settings(patience=patience, seed=seed, surrogate=True)
    session = TuningSession.tune(code, database=database, settings=settings, device=device, command=command)
    return SeparateSession(session, log=log)


def tuned_again(
    database: Path,
    wanted: Sequence[Again],
    *,
    patience: int,
    seed: int,
    device: str,
    command: str,
    log: int | None = None,
) -> SeparateSession:
    """Tune kernels of a database again on a GPU of this machine."""
    settings = Settings(patience=patience, seed=seed, surrogate=True)
    session = TuningSession.retune(database, _retunes(wanted), settings=settings, device=device, command=command)
    return SeparateSession(session, log=log)


def queue_behind(session: Session, wanted: Sequence[Again]) -> None:
    """Tune kernels again after what the session is at."""
    if isinstance(session, SeparateSession | TuningSession):
        session.enqueue(_retunes(wanted))


def _retunes(wanted: Sequence[Again]) -> list[Retune]:
    return [Retune(one.kernel, one.schedule) for one in wanted]
