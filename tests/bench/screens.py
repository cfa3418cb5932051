"""How fast the screens are, each figure beside its budget; prints, never fails. Run it on a quiet machine:

    python tests/bench/screens.py [--rows N] [--nodes N]

Trees of 1,000 and of `--nodes` nodes and a log of events are shown at 160 x 45 without a terminal; times are CPU ms of
this process, the median of some repetitions, and a tree's cost is to follow the lines that are seen. A bite is what one
tick may fold at most. `screens_terminal` runs the application in a terminal of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from emmy_tui import collecting
from emmy_tui.app import EmmyApp
from emmy_tui.database_source import DatabaseSource
from engine.data import demo_database
from engine.events import Event, KernelFound, KernelStarted, Measured, NodeOpened, NodeVisited, RunState, StateChanged
from engine.store import Store
from tests.bench.screens_terminal import measure_terminal
from tests.emmy_tui.measured import fill
from tests.emmy_tui.scripted import START, WORKS, ScriptedSource, search_events

FOLDED = 100_000
FAN_OUT = 10
SCROLL_MS = 25.0
DEPLOYS_S, STALL_MS = 6.0, 100.0
PROBE_S = 0.005
READ_TIMES = 80
"""How many times the trials of the scripted run are read from a database: 100,000 events."""


def tree_events(nodes: int) -> list[Event]:
    """A kernel with `nodes` tried nodes, ten children each."""
    kernel = KernelFound(
        at=START, kernel="k", label="matmul", family="contraction", shape="s", count=1, flops=1, bytes_moved=1
    )
    events: list[Event] = [StateChanged(at=START, state=RunState.RUNNING), kernel]
    events.append(KernelStarted(at=START, kernel="k", patience=50))
    for number in range(nodes):
        parent = f"n{(number - 1) // FAN_OUT}" if number else ""
        events.append(
            NodeOpened(
                at=START, node=f"n{number}", parent=parent, kernel="k", label=f"KNOB={number}", prior=0.5, depth=1
            )
        )
        events.append(NodeVisited(at=START, node=f"n{number}", visits=1, best_us=10 + number % 97, state="open"))
    return events


async def timed(name: str, times: int, action: Callable[[int], Awaitable[object]], budget: float = 0.0) -> None:
    """Print the median CPU time of `action`, beside its budget in ms where it has one."""
    spent = []
    for repetition in range(times):
        before = time.process_time()
        await action(repetition)
        spent.append((time.process_time() - before) * 1000)
    beside = f"  budget {budget:g}" if budget else ""
    print(f"{name:<44} {statistics.median(spent):9.1f} ms  (longest {max(spent):.1f}){beside}")


async def tree_of(nodes: int) -> None:
    source = ScriptedSource(tree_events(nodes))
    app = EmmyApp(source, clock=lambda: START, bite_s=60.0)
    async with app.run_test(size=(160, 45)) as pilot:
        while source.waiting:
            app.tick()
        tree = app.live.search_tree
        tree.follow(False)

        async def open_all(_: int) -> None:
            for node in list(app.view.snapshot.nodes.values()):
                if node.children:
                    tree.index._opened.add(node.node)
            tree.index._sync(list(tree.index._opened))
            tree.repaint()
            await pilot.pause()

        async def jump(repetition: int) -> None:
            tree.move_to((repetition * 7919) % len(tree.index))
            await pilot.pause()

        async def step(_: int) -> None:
            await pilot.press("j")

        async def one_visit(repetition: int) -> None:
            node = f"n{nodes // 2 + repetition}"
            source.add(NodeVisited(at=START, node=node, visits=9 + repetition, best_us=5.0, state="open"))
            app.tick()
            await pilot.pause()

        async def measured(repetition: int) -> None:
            for number in range(100):
                source.add(
                    Measured(
                        at=START + number,
                        kernel="k",
                        node=f"n{number}",
                        schedule="{}",
                        regime="ranking",
                        status="ok",
                        trial=repetition * 100 + number + 1,
                        us=20.0 + (number * 7919) % 101,
                    )
                )
            app.tick()
            await pilot.pause()

        async def nothing(_: int) -> None:
            app.tick()

        print(f"tree of {nodes:,} nodes")
        await timed("open every node", 1, open_all)
        print(f"{'lines now':<44} {len(tree.index):9,}")
        await timed("jump", 15, jump, SCROLL_MS)
        await timed("one line down", 15, step, SCROLL_MS)
        await timed("one node visited: tick and paint", 15, one_visit)
        await timed("100 candidates measured: tick and paint", 15, measured)
        await timed("nothing happened: tick", 15, nothing)
        print(f"{'resident memory':<44} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:9.0f} MB")


async def deploys_of_the_demo(path: Path) -> None:
    """What every kernel of the demo deploys, from the key that asks for it; and how late the loop was meanwhile."""
    app = EmmyApp(DatabaseSource(path))
    async with app.run_test(size=(160, 45)) as pilot:
        while app.view.reading or not app.view.snapshot.kernels:
            await asyncio.sleep(PROBE_S)
        began, cpu, late = time.perf_counter(), time.process_time(), 0.0
        pressed = asyncio.ensure_future(pilot.press("6"))
        while len(app.pins.deploys.found) < max(1, app.pins.deploys.wanted):
            before = time.perf_counter()
            await asyncio.sleep(PROBE_S)
            late = max(late, time.perf_counter() - before - PROBE_S)
        wall, spent = time.perf_counter() - began, time.process_time() - cpu
        await pressed
        kernels = len(app.pins.deploys.found)
        print(f"{f'Deploys now of {kernels} kernels':<44} {wall:9.1f} s   (CPU {spent:.1f})  budget {DEPLOYS_S:g}")
        print(f"{'  loop stall, longest':<44} {late * 1000:9.1f} ms  budget {STALL_MS:g}")


def demo_deploys() -> None:
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(deploys_of_the_demo(demo_database(Path(name))))


def write_events(path: Path, trials: int) -> int:
    """Write the database of a scripted run with so many times its trials; returns how many events that are."""
    fill(path, rows=1)
    events = search_events(works=[replace(work, trials=work.trials * trials) for work in WORKS])
    with Store.open(path) as store:
        run = store.latest_run()
        assert run is not None
        store.record_events(run.id, events)
    return len(events)


async def first_read_of(path: Path, events: int) -> None:
    """Until everything is shown: the longest look of the garbage collector, on whatever thread, as all others wait."""
    looks, began, cpu = [0.0], [0.0], time.process_time()

    def look(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            began.append(time.thread_time())
        else:
            looks.append(time.thread_time() - began.pop())

    app, late = EmmyApp(DatabaseSource(path)), 0.0
    gc.callbacks.append(look)
    async with app.run_test(size=(160, 45)):
        while app.view.reading or not app.view.snapshot.measured:
            before = time.perf_counter()
            await asyncio.sleep(PROBE_S)
            late = max(late, time.perf_counter() - before - PROBE_S)
    gc.callbacks.remove(look)
    print(f"{f'first read of {events:,} events, CPU':<44} {time.process_time() - cpu:9.1f} s")
    print(f"{'  longest look of the collector':<44} {max(looks) * 1000:9.1f} ms  (all {sum(looks) * 1000:.0f})")
    print(f"{'  loop stall, longest':<44} {late * 1000:9.1f} ms  budget {STALL_MS:g}")


def first_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "events.db"
        events = write_events(path, READ_TIMES)
        asyncio.run(first_read_of(path, events))


def fold_rate() -> None:
    from emmy_tui.feed import Feed

    events = tree_events(FOLDED)
    feed = Feed(ScriptedSource(events))
    feed.source.drain(0)
    before = time.process_time()
    bites = 1
    longest = 0.0
    more = True
    while more:
        began = time.perf_counter()
        more = feed.bite()
        longest = max(longest, time.perf_counter() - began)
        bites += 1
    spent = time.process_time() - before
    print(f"folding: {len(events) / spent:,.0f} events a CPU second in {bites} bites, longest {longest * 1000:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="measurements of the large database")
    parser.add_argument("--nodes", type=int, default=1_000_000, help="nodes of the large tree")
    options = parser.parse_args()
    measure_terminal(options.rows)
    collecting.begin()
    first_read()
    demo_deploys()
    fold_rate()
    for nodes in (1_000, options.nodes):
        asyncio.run(tree_of(nodes))


if __name__ == "__main__":
    main()
