"""What a person looked at before a replay or a run took its place, kept so that it comes back as it was."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from emmy_tui.feed import Feed
from emmy_tui.source import Source
from emmy_tui.view import View


@dataclass(frozen=True, slots=True)
class Earlier:
    """A database with the choices that were made about it; its source goes on following the file meanwhile."""

    feed: Feed
    tab: str
    chosen: str
    node: str
    marked: frozenset[str]
    programs: int

    @classmethod
    def of(cls, feed: Feed, view: View) -> Earlier:
        return cls(feed, view.tab, view.chosen, view.node, frozenset(view.marked), view.programs)

    def put_back(self, view: View) -> None:
        """The choices; the feed is shown by whoever owns it."""
        view.chosen, view.node, view.marked, view.programs = self.chosen, self.node, set(self.marked), self.programs


def close_aside(source: Source) -> None:
    """Close on a thread of its own, since a source may wait for the engine."""
    threading.Thread(target=source.close, name="emmy-close", daemon=True).start()
