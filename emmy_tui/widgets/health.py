"""How the run's machinery is: processes and what they are at, compiles and their age, GPUs, and who took what down."""

from __future__ import annotations

from dataclasses import dataclass

from emmy_tui import format as fmt
from emmy_tui.source import Mode
from emmy_tui.text import Line, Tone, clean, left, right
from emmy_tui.view import View
from emmy_tui.widgets.kernel_name import kernel_name
from emmy_tui.widgets.panel import ListPanel, titled
from engine.events import GpuSampled
from engine.snapshot import Snapshot

NAME = 22


@dataclass(frozen=True, slots=True)
class Compile:
    """A compile that runs, as the panel names it."""

    number: int
    kernel: str
    schedule: str


Entry = tuple[Line, Compile | None]


class HealthPanel(ListPanel):
    """The newest look at everything; the cursor picks a compile to be ended."""

    def __init__(self, view: View, *, id: str = "health") -> None:
        super().__init__(view, id=id)

    def title(self) -> Line:
        return titled("Health")

    def note(self) -> Line:
        compiles = self.view.snapshot.compilers
        ends = f"{self.view.key('kill_compile')} ends the compile under the cursor"
        return [(ends, Tone.DIM)] if compiles and compiles.numbers else []

    def empty(self) -> str:
        return "Nothing is known of the machine yet: a run on a GPU reports once a second"

    def entries(self) -> list[Entry]:
        snapshot = self.view.snapshot
        entries = [
            (line, None)
            for line in (*_shares(self.view), *_missing(self.view), *_gpus(self.view), *_ceilings(snapshot))
        ]
        return [*entries, *_workers(self.view), *_compiles(self.view), *_respawned(self.view)]

    def count(self) -> int:
        return len(self.entries())

    def rows(self, start: int, count: int, width: int) -> list[Line]:
        return [line for line, _ in self.entries()[start : start + count]]

    def current(self) -> Compile | None:
        """The compile under the cursor, else the oldest one."""
        entries = self.entries()
        under = entries[self.cursor][1] if self.cursor < len(entries) else None
        return under or next((one for _, one in entries if one is not None), None)


def _shares(view: View) -> list[Line]:
    health = view.snapshot.health
    if health is None:
        return []
    floor = "not measured yet"
    if health.noise_us is not None and health.noise_share is not None:
        floor = f"{health.noise_us:.3f} us ({health.noise_share * 100:.2f}%)"
    respawns = Tone.BAD if health.respawns else Tone.PLAIN
    idle = "" if view.mode is Mode.REPLAY else f"GPU idle {fmt.ratio(health.gpu_idle_share)}   "  # a replay uses none
    return [
        [
            (f"{idle}search {fmt.ratio(health.search_share)}   ", Tone.PLAIN),
            (f"noise floor {floor}   ", Tone.PLAIN),
            (f"respawns {health.respawns}", respawns),
        ]
    ]


def _missing(view: View) -> list[Line]:
    """What the devices do without; times are as good, but the run may be slower."""
    health = view.snapshot.health
    return [[(clean(reason, view.glyphs), Tone.BUSY)] for reason in health.missing] if health is not None else []


def _ceilings(snapshot: Snapshot) -> list[Line]:
    """What the floors of the kernels are made of."""
    found = snapshot.ceilings
    if found is None:
        return []
    rates = "   ".join(f"{kind} {rate:.0f}" for kind, rate in zip(found.kinds, found.tflops, strict=True))
    matmuls = f"   matmul {rates} TFLOP/s" if rates else ""
    return [[("at its best  ", Tone.HEAD), (f"copy {found.copy_gbs:.0f} GB/s{matmuls}", Tone.PLAIN)]]


def _gpus(view: View) -> list[Line]:
    return [_gpu(sample, view) for sample in view.snapshot.gpus.values()]


def _gpu(sample: GpuSampled, view: View) -> Line:
    """One GPU; what its driver doesn't tell is left out."""
    parts = [
        f"{sample.sm_mhz}/{sample.sm_max_mhz or '?'} MHz" if sample.sm_mhz is not None else "",
        f"{sample.temperature_c}C" if sample.temperature_c is not None else "",
        f"{sample.power_w:.0f} W" if sample.power_w is not None else "",
        f"busy {fmt.ratio(sample.busy_share)}" if sample.busy_share is not None else "",
    ]
    line: Line = [(f"{sample.device}  ", Tone.HEAD), ("  ".join(part for part in parts if part), Tone.PLAIN)]
    if sample.throttle:
        line.append((f"  throttled: {', '.join(sample.throttle)}", Tone.BAD))
    if sample.others is not None:
        others = ", ".join(sample.others)
        line.append((f"  others: {clean(others, view.glyphs) or 'none'}", Tone.BUSY if others else Tone.DIM))
    return line


def _who(view: View, kernel: str, schedule: str) -> str:
    row = view.snapshot.kernels.get(kernel)
    name = kernel_name(row, view.snapshot) if row is not None else kernel
    return f"{left(clean(name, view.glyphs), NAME, view.glyphs)} {clean(schedule, view.glyphs)}"


def _workers(view: View) -> list[Entry]:
    seen = view.snapshot.workers
    if seen is None:
        return []
    entries: list[Entry] = []
    told = zip(seen.devices, seen.pids, seen.steps, seen.kernels, seen.schedules, seen.ages_s, strict=True)
    for device, pid, step, kernel, schedule, age in told:
        whose = f"  {_who(view, kernel, schedule)}" if kernel else ""
        at = f"{step} since {age:.1f} s{whose}" if step else "waits"
        entries.append(([(f"worker {device} pid {pid}  ", Tone.DIM), (at, Tone.PLAIN)], None))
    return entries


def _compiles(view: View) -> list[Entry]:
    seen = view.snapshot.compilers
    if seen is None or not seen.numbers:
        return []
    entries: list[Entry] = [([(f"{fmt.plural(len(seen.numbers), 'compile')} under way", Tone.HEAD)], None)]
    for number, kernel, schedule, age in zip(seen.numbers, seen.kernels, seen.schedules, seen.ages_s, strict=True):
        line: Line = [(right(f"{age:.1f} s", 9) + "  ", Tone.BUSY), (_who(view, kernel, schedule), Tone.PLAIN)]
        entries.append((line, Compile(number, kernel, schedule)))
    return entries


def _respawned(view: View) -> list[Entry]:
    lost = view.snapshot.respawned
    if not lost:
        return []
    entries: list[Entry] = [([("Processes that candidates took down, the newest first", Tone.HEAD)], None)]
    for one in reversed(lost):
        what = f"{fmt.clock(one.at)} {one.device} {one.process}  "
        cause = f"{_who(view, one.kernel, one.schedule)}: {clean(one.cause, view.glyphs)}"
        entries.append(([(what, Tone.DIM), (cause, Tone.BAD)], None))
    return entries
