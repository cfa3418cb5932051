"""What the screen costs the tuner: the same search with it and without it, in turns, on a GPU.

    python -m tests.bench.screen_cost [--seconds 230] [--turns 0] [--code TEXT] [--device cuda:0] [--keep FOLDER]

One process opens the GPU and captures the program once, and then tunes it again and again, each time into an empty
database: off as `emmy tune -q` drives a session, on as the engine of `emmy-tui` is served to its screen, which is
another process, in a terminal of 160x45 whose output is read and thrown away; in rounds that are off it waits. The
program is one whose only kernel has a few hundred schedules, and the patience is above their
number: every run measures all of them, whatever it finds on the way. The first run, which isn't counted, compiles
them; so the tuner's own process is busier than in a first search, and a screen that stood in its way would show the
more. Runs go off, on, on, off, as many as `--seconds` allow: 230 are about fourteen pairs, which over simulated
arrivals with slow stretches give an interval of 0.7 % to either side (`test_screen_cost_statistics` prints it).

Printed are on over off, with 95 % intervals (`screen_cost_statistics` says how they come about):
- candidates a second, from windows of candidates: what a slow stretch of the host can't spoil. With "own" the benchmark
  process is reckoned with its usual seconds, which leaves what the tuner's process does;
- the plain rates, from a run's start to its end and from its first result to its last;
- the times of kernels, run by run;
- the CPU that the tuner's process takes, which packs events for the screen or folds them for the command line, and that
  of the process that draws.

`--turns N` adds N runs of each command, `emmy tune` and `emmy-tui`, from start to end, and says where their time goes;
each takes about 20 s. Ends with 1 where on and off differ by more than 1 % and by more than their noise, with 2 without
a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from engine.deploy.place import has_driver
from tests.bench.screen_cost_child import DATABASE, LINES, UNCOUNTED
from tests.bench.screen_cost_programs import Program, RunFailed, Screen, run_turns
from tests.bench.screen_cost_report import report, report_commands
from tests.bench.screen_cost_rounds import Cpu, Round, read_round

CODE = "torch.amax(torch.randn(32768, 640, dtype=torch.bfloat16, device='cuda'), dim=-1)"
"""One kernel of 360 schedules, and one grouping."""
CHILD = (sys.executable, "-m", "tests.bench.screen_cost_child")
LOADS_S = 5.0
"""What the process of the rounds takes to load, and to end."""
LATE_S = 60.0
READ_S = 0.25


def run_rounds(
    program: Program, seconds: float, folder: Path, command: Sequence[str] = CHILD, engine: Sequence[str] = ()
) -> list[Round]:
    """The rounds that count, in pairs; prints a line each. `engine` has the last arguments of `screen_cost_child`.

    Raises RunFailed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    until, told = time.monotonic() + seconds + LATE_S, 0
    screen = Screen([*command, str(folder), str(max(0.0, seconds - LOADS_S)), program.code, program.device, *engine])
    found: list[Round] = []
    try:
        while True:
            alive = screen.alive()
            lines = _lines(folder)
            found += [one for line in lines[told:] if (one := _heard(line, folder)) is not None]
            told = len(lines)
            if not alive:
                break
            if time.monotonic() > until:
                raise RunFailed(f"the rounds did not end within {LATE_S:.0f} s of their time")
            screen.spend(READ_S)
    finally:
        screen.close()
    if screen.status:
        raise RunFailed(f"the process of the rounds ended with {screen.status} and said: {screen.last_words}")
    if not found:
        raise RunFailed("there was no time for a pair of runs: give more --seconds")
    return found


def _lines(folder: Path) -> list[str]:
    path = folder / LINES
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _heard(line: str, folder: Path) -> Round | None:
    """Print one line of the process; the round that it tells of, if that counts. Raises RunFailed."""
    told = json.loads(line)
    if "failure" in told:
        raise RunFailed(f"the rounds ended early: {told['failure']}")
    if "opened_s" in told:
        print(
            f"the device was open after {told['opened_s']:.1f} s, the program captured {told['captured_s']:.1f} s later"
        )
        return None
    number = int(told["round"])
    cpu = Cpu(told["wall_s"], told["process_s"], told["screen_s"])
    try:
        found = read_round(folder / str(number) / DATABASE, on=told["on"], cpu=cpu)
    except ValueError as error:
        raise RunFailed(str(error)) from None
    print(
        f"{'on ' if found.on else 'off'}  {found.candidates} candidates, {found.failed} failed, {cpu.wall_s:.2f} s, "
        f"{found.whole_rate:.2f} a second, {found.rate:.2f} from the first to the last"
        f"{'' if number >= UNCOUNTED else ', not counted'}",
        flush=True,
    )
    return found if number >= UNCOUNTED else None


def measure(options: argparse.Namespace, folder: Path) -> int:
    began = time.monotonic()
    program = Program(options.code, options.device)
    rounds = run_rounds(program, options.seconds, folder / "rounds")
    status = report(rounds)
    if options.turns:
        print("\nthe commands, from start to end:")
        report_commands(run_turns(program, options.turns, folder / "commands"))
    print(f"{time.monotonic() - began:.0f} s in all")
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=230.0, help="for the runs of one process (default: 230)")
    parser.add_argument("--turns", type=int, default=0, help="runs of each command, beside (default: 0)")
    parser.add_argument("--code", default=CODE, help="the program: few schedules, all of which are measured")
    parser.add_argument("--device", default="cuda:0", metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the databases there; it must not exist")
    options = parser.parse_args()
    if options.seconds <= 0 or options.turns < 0:
        parser.error("--seconds is above 0, and --turns not below")
    if options.keep is not None and options.keep.exists():
        parser.error(f"--keep names a folder that isn't there yet, and {options.keep} is")
    if not has_driver():
        print("screen_cost: there is no NVIDIA driver on this machine, and tuning needs a GPU", file=sys.stderr)
        return 2
    try:
        if options.keep is not None:
            return measure(options, options.keep)
        with tempfile.TemporaryDirectory() as name:
            return measure(options, Path(name))
    except RunFailed as error:
        print(f"screen_cost: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
