"""What the title of a list of the database says in a replay: it holds the whole recording, not what came so far."""

from __future__ import annotations

from emmy_tui.source import Mode
from emmy_tui.view import View


def recorded(title: str, view: View) -> str:
    """The title of a list; in a replay it says that its rows are recorded."""
    return f"{title} (recorded)" if view.mode is Mode.REPLAY else title
