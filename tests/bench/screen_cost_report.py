"""What `screen_cost` prints of its rounds, and whether on and off differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.bench.screen_cost_rounds import RANKING, Cpu, Round
from tests.bench.screen_cost_statistics import Interval, Speed, levels, pairs, plain, robust, speeds, verdict

NAMES = 46


def report(rounds: Sequence[Round]) -> int:
    """Print the comparison; returns the exit status."""
    found = speeds(rounds)
    throughput = _robust(rounds, [one.log for one in found])
    own = _robust(rounds, [one.log for one in speeds(rounds, own=True)])
    figures, schedules = levels(rounds, RANKING)
    times = _robust(rounds, figures)
    print(f"\nevery run timed {_same(rounds)}; on over off, 95 % intervals, {len(rounds) // 2} pairs of runs")
    told("candidates/s, windows", throughput, f"  set aside: {_set_aside(rounds, found)}")
    told("candidates/s, windows, own", own)
    told("candidates/s, plain, run start to run end", _plain(rounds, [math.log(one.whole_rate) for one in rounds]))
    told("candidates/s, plain, first result to last", _plain(rounds, [math.log(one.rate) for one in rounds]))
    told(f"times of {schedules} schedules, ranking", times)
    _tell_cpu(rounds)
    print(f"throughput with the screen on and off: {verdict(throughput)}")
    print(f"what the tuner's process does of it:   {verdict(own)}")
    print(f"medians:                               {verdict(times)}")
    return int(any("DIFFER" in verdict(one) for one in (throughput, own, times)))


def report_commands(rounds: Sequence[Round]) -> None:
    """The same of whole commands, which are few."""
    figures, schedules = levels(rounds, RANKING)
    told("candidates/s, plain, run start to run end", _plain(rounds, [math.log(one.whole_rate) for one in rounds]))
    told("candidates/s, plain, first result to last", _plain(rounds, [math.log(one.rate) for one in rounds]))
    told(f"times of {schedules} schedules, ranking", _plain(rounds, figures))


def told(name: str, ratio: Interval, more: str = "") -> None:
    print(f"{name:<{NAMES}} {ratio}{more}")


def _robust(rounds: Sequence[Round], logs: Sequence[float]) -> Interval:
    return robust(pairs(rounds, logs)).ratio()


def _plain(rounds: Sequence[Round], logs: Sequence[float]) -> Interval:
    return plain(pairs(rounds, logs)).ratio()


def _same(rounds: Sequence[Round]) -> str:
    timed = {frozenset(key for key in one.medians if key[2] == RANKING) for one in rounds}
    return "the same schedules" if len(timed) == 1 else "NOT the same schedules"


def _set_aside(rounds: Sequence[Round], found: Sequence[Speed]) -> str:
    said = []
    for on in (True, False):
        of = [speed for one, speed in zip(rounds, found, strict=True) if one.on is on]
        said.append(
            f"{'on' if on else 'off'} {sum(speed.set_aside for speed in of)} of {sum(speed.windows for speed in of)}"
        )
    return ", ".join(said)


def _tell_cpu(rounds: Sequence[Round]) -> None:
    """Shares of the wall, in percent of a core."""
    process, screen = ([_share(one.cpu, name) for one in rounds] for name in ("process_s", "screen_s"))
    for name, shares in (("the tuner's process", process), ("the other one", screen)):
        on, off = (_mean(rounds, shares, on) for on in (True, False))
        more = robust(pairs(rounds, shares))
        print(
            f"{'CPU of ' + name + ', on and off':<{NAMES}} {on:.2f} % and {off:.2f} % of a core, "
            f"more by {more.value:.2f} [{more.low:.2f}, {more.high:.2f}]"
        )


def _share(cpu: Cpu | None, name: str) -> float:
    return math.nan if cpu is None else 100 * float(getattr(cpu, name)) / cpu.wall_s


def _mean(rounds: Sequence[Round], shares: Sequence[float], on: bool) -> float:
    found = [share for one, share in zip(rounds, shares, strict=True) if one.on is on]
    return sum(found) / len(found)
