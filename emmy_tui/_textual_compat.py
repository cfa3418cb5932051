"""Work-arounds for Textual, each with the condition that ends it.

`CroppedUpdate`: Textual 8.2.8 sends a dirty region of a widget from the widget's left edge on, although the region
begins further right (`ChopsUpdate.render_segments` crops at 0). Over SSH that is most of what is sent. It can go when
an update of the last cell of a line no wider than that cell reaches the terminal.
"""

from __future__ import annotations

from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate


class CroppedUpdate(ChopsUpdate):
    """Sends the cells of the dirty spans and no others."""

    @classmethod
    def of(cls, update: ChopsUpdate) -> CroppedUpdate:
        return cls(update.chops, update.spans, update.chop_ends)

    def render_segments(self, console: Console) -> str:
        sent: list[str] = []
        for y, first, last in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                start, stop = max(x, first), min(end, last)
                if strip is None or start >= stop:
                    continue
                piece = strip if (start, stop) == (x, end) else strip.crop(start - x, stop - x)
                sent += [Control.move_to(start, y).segment.text, piece.render(console)]
        return "".join(sent)
