"""What the panels share: the folded run, and the choices a person made about how to look at it."""

from __future__ import annotations

from dataclasses import dataclass, field

from emmy_tui.action import LIVE
from emmy_tui.actions import Keys, key_named
from emmy_tui.run_clock import RunClock
from emmy_tui.source import Mode
from emmy_tui.text import UNICODE, Glyphs
from engine.events import RunState
from engine.snapshot import KernelRow, Snapshot

BUSY_STATES = (RunState.CAPTURING, RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)


@dataclass(slots=True)
class View:
    """`chosen` is the kernel a person picked, "" while the view goes along with the engine.

    `state` is the run's newest state, also while the view is frozen; `held` counts events that wait because
    the view is frozen; `now` is seconds since 1970. `keys` are those that a person changed, `letters` name the panels
    while one is jumped to, `badges` warn of the database file. `clock` says how long the folded runs have taken, and
    `reason` why the run is in its state; `programs` counts those of a replay or a database.
    `marked` are the kernels that a person picked to tune again; `reading` says that what the database holds is still
    on its way, so that nothing can be told of it yet. `trouble` says why the database can't be read at the moment,
    `unwritable` why it can't be written. `heard_s` are seconds since a followed run of another process said something.
    `lost` says that the run never told of its end and is taken for ended.
    """

    snapshot: Snapshot = field(default_factory=Snapshot)
    glyphs: Glyphs = UNICODE
    mode: Mode | None = None
    title: str = ""
    database: str = ""
    read_only: bool = False
    chosen: str = ""
    log_scale: bool = True
    by_time: bool = False
    state: str = RunState.IDLE
    frozen: bool = False
    held: int = 0
    dropped: int = 0
    stop_asked_at: float | None = None
    now: float = 0.0
    node: str = ""
    tab: str = LIVE
    keys: Keys = field(default_factory=dict)
    letters: dict[str, str] = field(default_factory=dict)
    badges: tuple[str, ...] = ()
    clock: RunClock = field(default_factory=RunClock)
    reason: str = ""
    programs: int = 0
    marked: set[str] = field(default_factory=set)
    reading: bool = False
    trouble: str = ""
    unwritable: str = ""
    heard_s: float | None = None
    lost: bool = False

    def key(self, action: str) -> str:
        """What a sentence calls the key of an action: the one that a person has for it now."""
        return key_named(action, self.keys)

    @property
    def kernel(self) -> KernelRow | None:
        """The kernel that curve and tree show."""
        kernels = self.snapshot.kernels
        for key in (self.chosen, self.snapshot.current_kernel):
            if key in kernels:
                return kernels[key]
        return next(iter(kernels.values()), None)

    @property
    def followed(self) -> str:
        """The run that the screens listen to, by its id; "" for none, and while they catch up with it."""
        return self.snapshot.run.run if self.snapshot.run is not None and not self.reading else ""

    @property
    def busy(self) -> bool:
        """Whether a run is under way."""
        return self.state in BUSY_STATES and not self.lost

    @property
    def elapsed_s(self) -> float | None:
        """Seconds that the shown runs have taken up to now, or to the last event where nothing moves."""
        moving = self.busy and not self.frozen and self.mode is not Mode.BROWSE
        return self.clock.elapsed_s(self.now if moving else None)

    @property
    def empty(self) -> bool:
        """Whether a database is looked at that was read and holds nothing to show."""
        idle = self.mode is Mode.BROWSE and self.state == RunState.IDLE
        return idle and not (self.reading or self.failure or self.snapshot.kernels)

    @property
    def failure(self) -> str:
        """Why the run failed, or why its database can't be read at the moment; "" where neither is so."""
        failed = self.state == RunState.FAILED and not self.reading
        return self.trouble or (self.reason or "the run failed" if failed else "")
