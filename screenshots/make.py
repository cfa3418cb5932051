"""Pictures of the real application on a recorded database: every tab and one variant, two sizes, dark and light.

    python screenshots/make.py [DATABASE] [--out FOLDER]

Replays the search in the database (the shipped demo by default) without pausing, and writes one SVG a picture; a PNG
beside it where `rsvg-convert` is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from emmy_tui.app import EmmyApp
from emmy_tui.database_source import DatabaseSource
from emmy_tui.look import DARK, LIGHT, Look
from emmy_tui.source import Mode, SessionSource, Source
from engine.data import DemoMissing, demo_database
from engine.events import RunState
from engine.session import TuningSession
from engine.store import Store, StoreError, copy_database
from engine.tune import Settings
from engine.vocabulary import Schedule

SIZES = {"wide": (160, 45), "narrow": (80, 24)}
TABS = {
    "browse": (),
    "variants": ("2",),
    "variant": ("2", "enter"),
    "failures": ("3",),
    "prior": ("4",),
    "compare": ("5",),
    "pins": ("6",),
}
"""Name of a picture of the browsed database, and the keys that lead there."""
THEMES = {"dark": DARK, "light": LIGHT}
WARM_UP_S = 60.0
SHOWN_CANDIDATES = 400
SETTLED_S = 1.0


def replaying(database: Path) -> SessionSource:
    """A replay slow enough to be pictured while it runs."""
    settings = Settings(patience=50, seed=0)
    return SessionSource(
        lambda: TuningSession.replay(database, settings=settings, pace=0.02), Mode.REPLAY, "demo", "demo"
    )


def with_pins(database: Path, copy: Path) -> Path:
    """A copy in which a few kernels are pinned: to their best, to their fifth, and to something never measured."""
    copy_database(database, copy)
    with Store.open(copy) as store:
        for place, found in enumerate(store.variants(top=5)[:6:2]):
            row = found.rows[(0, 4, 0)[place]]
            schedule = Schedule.of({**row.schedule, **({"NUM_WARPS": 32} if place == 2 else {})})
            note = ("", "smoother on small batches", "to be measured")[place]
            store.record_pin(found.kernel, schedule, found.context, author="ana", note=note)
    return copy


async def picture(
    source: Source, look: Look, size: tuple[int, int], path: Path, *, live: bool, keys: Sequence[str] = ()
) -> None:
    """Run the application until there is something to see, press the keys, and write what it shows."""
    app = EmmyApp(source, look)
    async with app.run_test(size=size) as pilot:
        ends = time.monotonic() + WARM_UP_S
        quiet_since, seen = time.monotonic(), -1.0
        while time.monotonic() < ends:
            app.tick()
            await asyncio.sleep(0.1)
            if app.view.snapshot.last_at != seen:
                quiet_since, seen = time.monotonic(), app.view.snapshot.last_at
            ended = app.view.state in (RunState.FINISHED, RunState.STOPPED, RunState.FAILED)
            settled = ended and time.monotonic() - quiet_since > SETTLED_S
            if settled or (live and len(app.view.snapshot.log) >= SHOWN_CANDIDATES):
                break
        if live and "pause" in source.capabilities:
            source.pause()
        app.tick()
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            while app.desk.busy:
                await asyncio.sleep(0.02)
            await pilot.pause()
        path.write_text(app.export_screenshot(title="emmy-tui"))
    source.close()
    print(path)


def to_png(path: Path) -> None:
    converter = shutil.which("rsvg-convert")
    if converter:
        subprocess.run([converter, "-z", "2", str(path), "-o", str(path.with_suffix(".png"))], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("database", nargs="?", type=Path, help="recorded database (default: the shipped demo)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where the pictures go")
    options = parser.parse_args()
    try:
        database: Path = options.database or demo_database()
        Store.open(database, read_only=True).close()
    except (DemoMissing, StoreError) as error:
        print(f"make.py: {error}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pinned = with_pins(database, Path(folder) / "demo.db")
        for width, size in SIZES.items():
            for theme, name in THEMES.items():
                look = Look(theme=name)
                live = options.out / f"live-{width}-{theme}.svg"
                asyncio.run(picture(replaying(database), look, size, live, live=True))
                to_png(live)
                for kind, keys in TABS.items():
                    path = options.out / f"{kind}-{width}-{theme}.svg"
                    asyncio.run(picture(DatabaseSource(pinned), look, size, path, live=False, keys=keys))
                    to_png(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
