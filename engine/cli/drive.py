"""Drives one session from the command line: prints its events until it ends, and turns signals into stop and abort.

The session runs in its own thread. A signal handler only notes what came, because it can interrupt this thread while
it holds a lock of the session; the loop acts on it a tick later.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from engine.cli.errors import complain
from engine.cli.progress import Progress
from engine.events import Event
from engine.session import STOP_S
from engine.snapshot import Snapshot, apply

BATCH = 2000
TICK_S = 0.05
STOPPING = (
    f"stopping after the candidate in flight, in {STOP_S:g} s at the latest; all measured rows are kept; "
    "Ctrl-C again aborts"
)


class Session(Protocol):
    """The part of a TuningSession that the command line uses."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def abort(self) -> None: ...

    def drain(self, limit: int = ...) -> list[Event]: ...

    def wait(self, timeout: float | None = ...) -> bool: ...


class Interruptions:
    """What signals asked for: the first Ctrl-C stops the session, a second one, a hang-up or a kill aborts it."""

    def __init__(self) -> None:
        self._came: list[int] = []
        self._answered = 0

    @property
    def exit_code(self) -> int:
        """By the first signal: 130 after Ctrl-C, 128 plus its number after another, 0 if none came."""
        return 128 + self._came[0] if self._came else 0

    def note(self, number: int, frame: FrameType | None) -> None:
        """The signal handler."""
        self._came.append(number)

    def act(self, session: Session, progress: Progress) -> None:
        """Answer the signals that came since the last call."""
        for position in range(self._answered, len(self._came)):
            progress.clear()
            if position == 0 and self._came[position] == signal.SIGINT:
                complain(STOPPING)
                session.stop()
            else:
                session.abort()
            self._answered += 1


def run_session(session: Session, progress: Progress) -> tuple[Snapshot, int]:
    """Run to the end; returns what happened and the exit code of an interruption, 0 if there was none."""
    snapshot = Snapshot()
    with _noting_signals() as interruptions:
        session.start()
        ended = False
        while not ended:
            ended = session.wait(TICK_S)
            interruptions.act(session, progress)
            while events := session.drain(BATCH):
                for event in events:
                    progress.show(apply(snapshot, event), event)
                progress.paint(snapshot)
                interruptions.act(session, progress)
        progress.clear()
    return snapshot, interruptions.exit_code


@contextmanager
def _noting_signals() -> Iterator[Interruptions]:
    """Note signals inside, and put the former handlers back; a signal that is ignored (nohup) stays ignored."""
    interruptions = Interruptions()
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    former = {number: signal.getsignal(number) for number in numbers}
    try:
        for number, handler in former.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, interruptions.note)
        yield interruptions
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
