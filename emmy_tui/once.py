"""One plain frame of a database's state, for pipes, dumb terminals and people who only want a look."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from emmy_tui.known import fold
from emmy_tui.notice import empty_lines
from emmy_tui.run_clock import RunClock
from emmy_tui.source import Mode
from emmy_tui.text import ASCII, UNICODE, Line, plain
from emmy_tui.view import View
from emmy_tui.widgets.event_log import entries, entry_line
from emmy_tui.widgets.kernel_list import Columns, header_line, kernel_line, longest_label
from emmy_tui.widgets.status import status_line
from emmy_tui.widgets.totals import total_lines
from engine.events import Event
from engine.snapshot import Snapshot

WIDTH = 100
LAST_EVENTS = 10


def frame(events: Iterable[Event], path: Path, *, ascii_only: bool, lost: bool = False) -> str:
    """Header, kernels, totals and the last events of what the database says, of a run that is `lost` or not."""
    snapshot, clock = Snapshot(), RunClock()
    for event in events:
        fold(snapshot, event)
        clock.note(event)
    view = View(
        snapshot=snapshot,
        glyphs=ASCII if ascii_only else UNICODE,
        mode=Mode.BROWSE,
        state=snapshot.state,
        database=str(path),
        clock=clock,
        lost=lost,
    )
    columns = Columns.of(WIDTH, longest_label(snapshot))
    total = snapshot.counted_us()
    counts = {row.kernel: count for row, count in snapshot.counted_kernels()}
    lines: list[Line] = [status_line(view, WIDTH), [], header_line(columns, view.glyphs)]
    for row in snapshot.kernels.values():
        lines.append(kernel_line(row, counts.get(row.kernel), total, False, columns, view.glyphs, lost=lost))
    lines += [[], *total_lines(view, WIDTH), []]
    lines += empty_lines(view, WIDTH)
    for entry in entries(snapshot.log)[-LAST_EVENTS:]:
        lines.append(entry_line(entry, snapshot, WIDTH, view.glyphs))
    return "".join(plain(line).rstrip() + "\n" for line in lines)
