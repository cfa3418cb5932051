"""Whether a run that never told of its end is taken for ended: one rule for lists of runs and for the status line."""

from __future__ import annotations

from emmy_tui.source import ENDED
from engine.store import Store, StoredRun

GONE_S = 600.0
"""A run that wrote nothing for so long is taken for ended."""
WITHOUT_A_WORD = "ended without a word"


def state_word(store: Store, run: StoredRun, newest: bool, now: float) -> str:
    """A run's state in words. Without an end it ended without a word where a newer run has begun, or where it was
    silent for GONE_S."""
    if run.state in ENDED or run.ended_at is not None:
        return run.state
    heard = store.last_heard(run.id) or run.started_at
    return run.state if newest and now - heard <= GONE_S else WITHOUT_A_WORD


def is_lost(store: Store, run: StoredRun, now: float) -> bool:
    """Whether a run ended without a word, by all that the database says now. Raises StoreError."""
    newest = store.latest_run()
    return state_word(store, run, newest is None or newest.id == run.id, now) == WITHOUT_A_WORD
