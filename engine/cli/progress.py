"""What a run says of itself while it goes on: one live line on a terminal, lines of steps anywhere else.

Both read the snapshot that the events of the run fold into, as the screens do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import Enum
from typing import TextIO

from engine.cli.knob_text import schedule_line
from engine.cli.output import printable, terminal_width, us_text
from engine.events import Event, KernelFinished, KernelStarted, Logged, Measured, RunState, StateChanged
from engine.snapshot import KernelRow, Snapshot
from engine.vocabulary import Regime

REPAINT_S = 0.1


class Detail(Enum):
    """How much a run prints while it goes on."""

    QUIET = "errors only"
    NORMAL = "the live line, or the milestones where there is no terminal"
    VERBOSE = "a line a step"


class Progress:
    """Prints a run: steps and milestones to `lines`, the live line to `live` if that is a terminal."""

    def __init__(self, detail: Detail, lines: TextIO, live: TextIO) -> None:
        self._detail = detail
        self._lines = lines
        self._live = live
        self._on_terminal = terminal_width(live) is not None
        self._painted_at = 0.0
        self._on_screen = False
        self._last: Measured | None = None
        self._deploy_us: dict[str, float] = {}

    def show(self, snapshot: Snapshot, event: Event) -> None:
        """Print what one event, just folded into `snapshot`, has brought."""
        self._note(event)
        if self._detail is Detail.VERBOSE:
            self._write(step_line(snapshot, event, self._deploy_us))
        elif self._detail is Detail.NORMAL and not self._on_terminal:
            self._write(milestone_line(snapshot, event))

    def paint(self, snapshot: Snapshot) -> None:
        """Refresh the live line if there is a terminal for it; cheap enough to be called at any time."""
        now = time.monotonic()
        if self._detail is not Detail.NORMAL or not self._on_terminal or now - self._painted_at < REPAINT_S:
            return
        width = terminal_width(self._live)
        if width is None:
            return
        self._painted_at = now
        self._live.write("\r" + printable(live_line(snapshot, self._last))[: width - 1] + "\x1b[K")
        self._live.flush()
        self._on_screen = True

    def clear(self) -> None:
        """Take the live line off the screen, so that something else can be printed there."""
        if self._on_screen:
            self._live.write("\r\x1b[K")
            self._live.flush()
            self._on_screen = False

    def _note(self, event: Event) -> None:
        """Keep what the lines need beside the snapshot: the last ranking time, and each kernel's best deploy time."""
        if isinstance(event, KernelStarted):
            self._deploy_us.pop(event.kernel, None)
        elif isinstance(event, Measured) and event.regime != Regime.DEPLOY:
            self._last = event
        elif isinstance(event, Measured) and event.us is not None:
            self._deploy_us[event.kernel] = min(event.us, self._deploy_us.get(event.kernel, event.us))

    def _write(self, line: str) -> None:
        if line:
            self._lines.write(printable(line) + "\n")
            self._lines.flush()


def kernel_name(row: KernelRow | None, key: str) -> str:
    """A kernel for people: its label and shape, or its key while nothing else is known."""
    return f"{row.label or row.family} {row.shape}".strip() if row is not None else key


def live_line(snapshot: Snapshot, last: Measured | None) -> str:
    """The one line: what matters most stands first, because the right end is cut on a narrow terminal."""
    row = snapshot.kernels.get(snapshot.current_kernel)
    if row is None:
        return " ".join(part for part in (snapshot.state, snapshot.state_reason) if part)
    now = "-" if last is None else f"{us_text(last.us)} us" if last.us is not None else last.failure or last.status
    done = sum(kernel.state in ("done", "failed") for kernel in snapshot.kernels.values())
    parts = [
        f"[{min(done + 1, len(snapshot.kernels))}/{len(snapshot.kernels)}] {kernel_name(row, row.kernel)}",
        f"#{len(row.points)}",
        now,
        f"best {us_text(row.best_us)} us",
        f"patience {row.since_best}/{row.patience}",
        f"{snapshot.failed} failed",
        f"{snapshot.cached} cached",
    ]
    if snapshot.state not in ("running", ""):
        parts.insert(0, snapshot.state)
    return "  ".join(parts)


def step_line(snapshot: Snapshot, event: Event, deploy_us: Mapping[str, float]) -> str:
    """The line of one step for `-v`: a decided candidate, a re-measurement, or a milestone.

    The best beside a time is that of the time's own regime, because the two can't be compared; `deploy_us` has each
    kernel's best deploy time so far, in us.
    """
    if not isinstance(event, Measured):
        return milestone_line(snapshot, event)
    row = snapshot.kernels.get(event.kernel)
    if event.us is not None:
        answer = f"{us_text(event.us):>8} us"
    else:
        answer = f"{event.failure}: {event.cause}" if event.failure else f"{event.status:>11}"
    step = f"#{event.trial}" if event.trial else event.regime
    ranking_us = row.best_us if row else None
    best_us = deploy_us.get(event.kernel) if event.regime == Regime.DEPLOY else ranking_us
    best = f"{'new best' if event.best else 'best':>8} {us_text(best_us):>7} us"
    served = "cached" if event.cached else ""
    return f"{kernel_name(row, event.kernel)}  {step:<6} {answer}  {best}  {served:<6}  {schedule_line(event.schedule)}"


def milestone_line(snapshot: Snapshot, event: Event) -> str:
    """The line of an event worth reading in a log without a terminal, or "" for the others."""
    match event:
        case KernelStarted():
            return f"{kernel_name(snapshot.kernels.get(event.kernel), event.kernel)}: search starts"
        case Measured(best=True, regime=Regime.RANKING):
            row = snapshot.kernels.get(event.kernel)
            best = f"#{event.trial}  new best {us_text(event.us)} us"
            return f"{kernel_name(row, event.kernel)}  {best}  {schedule_line(event.schedule)}"
        case KernelFinished():
            row = snapshot.kernels.get(event.kernel)
            us = event.best_us if row is None else row.chosen_us
            best = "no working schedule" if us is None else f"best {us_text(us)} us"
            reason = f" ({event.reason})" if event.reason else ""
            return f"{kernel_name(row, event.kernel)}: {event.state}, {best}{reason}"
        case StateChanged(state=state, reason=reason) if reason and state != RunState.FAILED:
            return f"{state}: {reason}"  # why a run failed is the command's last word
        case Logged(level=level, text=text) if level != "debug":
            return text if level == "info" else f"{level}: {text}"
    return ""
