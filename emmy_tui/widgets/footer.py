"""The last line: the keys that work now, and nothing else."""

from __future__ import annotations

from emmy_tui.action import Now
from emmy_tui.actions import Keys, first_key, footer_actions
from emmy_tui.text import Line, Tone, line_width
from emmy_tui.view import View
from emmy_tui.widgets.panel import Panel


def footer_line(now: Now, width: int, keys: Keys | None = None) -> Line:
    """As many of the offered keys as fit whole."""
    line: Line = []
    for action in footer_actions(now):
        item: Line = [(first_key(action, keys), Tone.KEY), (f" {action.label}", Tone.PLAIN)]
        gap: Line = [("  ", Tone.PLAIN)] if line else []
        if line_width(line) + line_width(gap) + line_width(item) > width:
            break
        line += gap + item
    return line


class Footer(Panel):
    """Set `now` and repaint."""

    framed = False

    def __init__(self, view: View, *, id: str = "footer") -> None:
        super().__init__(view, id=id)
        self.now = Now()

    def lines(self, width: int, height: int) -> list[Line]:
        return [footer_line(self.now, width, self.view.keys)]
