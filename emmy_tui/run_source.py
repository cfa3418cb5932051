"""One run of a database, as it was written: what a person picked, where the screen would show the newest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from emmy_tui.database_source import NEW_RUN_S, DatabaseSource
from emmy_tui.run_state import Listener
from engine.events import Event
from engine.store import Store, StoredRun


class RunSource(DatabaseSource):
    """Reads its run, and stays with it: a newer one begins elsewhere."""

    def __init__(self, path: Path, run: StoredRun) -> None:
        self._run = run
        self._lost = False
        super().__init__(path)
        self.title = f"run {run.id[:8]}"

    @property
    def badges(self) -> tuple[str, ...]:
        """What is missing; nobody waits for what this run says next."""
        return self._missing_badges()

    @property
    def heard_s(self) -> None:
        return None

    @property
    def lost(self) -> bool:
        return self._lost and not self.reading

    def _events(self, store: Store, over: Callable[[], bool]) -> Iterator[Event]:
        self._read_up = False
        yield from store.events_of(self._run.id)
        listener = Listener(self._run)
        while not over():
            self._lost = listener.lost(store, self._clock())
            self._up_to_now()
            self._closing.wait(NEW_RUN_S)
