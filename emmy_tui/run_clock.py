"""How long the shown runs have taken: the clock of a run stands still while it is paused and stops when it ends.

A replay goes through several programs, one run each, and a database holds several runs with days between them: their
times add up, and what lies between them doesn't count. What was shown never goes back by the moment that lies between
an event and its news, nor where a frozen view stops at what it has.
"""

from __future__ import annotations

from engine.events import Event, RunStarted, RunState, StateChanged

NEWS_S = 2.0
"""How old the news of a pause or an end is at most; where more was shown, the clock of the machine was set."""
_STILL = (RunState.PAUSED, RunState.STOPPED, RunState.FINISHED, RunState.FAILED)


class RunClock:
    """Fed with every event, in order. Times are seconds since 1970, durations seconds."""

    def __init__(self) -> None:
        self._started = False
        self._gone = 0.0
        self._since: float | None = None
        self._last = 0.0
        self._shown = 0.0

    def note(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._hold(self._last)
            self._started, self._since = True, event.at
        elif isinstance(event, StateChanged) and self._started:
            if event.state in _STILL:
                self._hold(event.at)
            elif event.state == RunState.RUNNING and self._since is None:
                self._since = event.at
        self._last = event.at

    def _hold(self, at: float) -> None:
        if self._since is not None:
            self._gone += max(0.0, at - self._since)
            self._since = None

    def elapsed_s(self, now: float | None = None) -> float | None:
        """Up to `now`, or to the last event; None before the first run has started."""
        if not self._started:
            return None
        gone, since = self._gone, self._since
        if since is not None:
            gone += max(0.0, max(now or 0.0, self._last) - since)
        if since is not None or self._shown - gone < NEWS_S:
            gone = max(gone, self._shown)
        self._shown = gone
        return gone
