"""From the command line's options to a source of events or to a frame.

What can be known of a run before it begins is checked here, so that a refusal is a sentence on a quiet terminal and not
a screen with nothing on it. `emmy_tui.sessions`, which loads the whole engine, is imported on the thread that opens the
session: the first frame doesn't wait for it.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path

from emmy_tui.database_source import DatabaseSource, recorded_events
from emmy_tui.once import frame
from emmy_tui.refusal import TO_LOOK, TO_WRITE, BadInput
from emmy_tui.run_state import Listener
from emmy_tui.source import Again, Mode, Session, SessionSource, Source
from engine.capture import CaptureError, parse_target
from engine.data import DemoMissing, demo_database
from engine.extras import install_text
from engine.store import Store, StoreError, default_database_path, upgrade_file
from engine.typed_path import BadPath, typed_path

DEMO_PACE_S = 0.12
DRIVER_FILES = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""What a driver leaves on Linux, in a container, and under Windows' Linux."""
_CUDA_NAME = re.compile(r"cuda(:\d+)?")
_WITHOUT_GPU = "without a GPU, browse a database with emmy-tui DB, or watch the demo with emmy-tui --demo"


def open_source(options: argparse.Namespace) -> Source | None:
    """What the options ask for, without waiting for it; None where there is nothing to show yet. Raises BadInput."""
    if options.demo:
        demo_path()
        return demo_source(options)
    if options.replay:
        return recorded_source(options)
    if options.code:
        database = named_database(options.db)
        check_run(options.code, database, options.device)
        return _live_source(options, database)
    path = database_to_browse(options)
    if path is None:
        return None
    if not options.read_only:
        _upgrade(path)
    return DatabaseSource(path)


def _upgrade(path: Path) -> None:
    """Upgrade an older database in place, so that it is followed; where it can't be, a copy is read and says so."""
    with suppress(StoreError):
        upgrade_file(path)


def database_to_browse(options: argparse.Namespace) -> Path | None:
    """The named database, or the user's if it exists. Raises BadInput if it can't be opened."""
    path = named_database(options.database)
    if options.database is None and not path.exists():
        return None
    _check_readable(path, TO_LOOK)
    return path


def named_database(named: Path | None) -> Path:
    """The path of the named or of the user's database, in full. Raises BadInput."""
    try:
        return typed_path(named or default_database_path())
    except BadPath as error:
        raise BadInput(str(error)) from None


def _check_readable(path: Path, named_by: str) -> None:
    try:
        Store.open(path, read_only=True).close()
    except StoreError as error:
        raise BadInput(error.named_by(named_by)) from None


def check_run(code: str, database: Path, device: str) -> None:
    """Raise BadInput for what stands in the way of a run, as far as it is known without loading torch."""
    try:
        parse_target(code)
    except CaptureError as error:
        raise BadInput(str(error)) from None
    _check_machine(device)
    if database.exists():
        _check_readable(database, TO_WRITE)
    if not _can_write(database):
        raise BadInput(f"the database {database} can't be written; name another with {TO_WRITE}")


def _check_machine(device: str) -> None:
    """Raise BadInput for what this machine lacks to tune."""
    if not _CUDA_NAME.fullmatch(device):
        raise BadInput(f"{device!r} is no device to tune on; it is cuda:0, cuda:1, …")
    missing = [package for package in ("torch", "triton") if find_spec(package) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise BadInput(
            f"{' and '.join(missing)} {are} not installed; {install_text('tune')} adds what tuning needs; "
            f"{_WITHOUT_GPU}"
        )
    if not has_driver():
        raise BadInput(f"there is no NVIDIA driver on this machine, and tuning needs a GPU; {_WITHOUT_GPU}")


def _can_write(path: Path) -> bool:
    """Whether the file, or the nearest folder in which it would be made, may be written."""
    if path.exists():
        return os.access(path, os.W_OK)
    nearest = next((place for place in path.absolute().parents if place.exists()), Path("/"))
    return nearest.is_dir() and os.access(nearest, os.W_OK)


def has_driver() -> bool:
    """Whether an NVIDIA driver seems to be here; whether its GPU works is found out by the run."""
    return any(path.exists() for path in DRIVER_FILES) or find_library("cuda") is not None


def demo_path() -> Path:
    """The demo's database. Raises BadInput if it can't be had."""
    try:
        return demo_database()
    except DemoMissing as error:
        raise BadInput(str(error)) from None


def demo_source(options: argparse.Namespace) -> Source:
    """A replay of the demo's database."""
    return _replay(options, demo_database, "demo", "demo")


def replay_of(options: argparse.Namespace, database: Path, wanted: Sequence[Again]) -> Source:
    """A replay of the searches of these kernels, as far as a database recorded them."""
    title = f"again: {', '.join(one.label for one in wanted)}"
    return _replay(options, lambda: database, title, str(database), [one.kernel for one in wanted])


def recorded_source(options: argparse.Namespace) -> Source:
    """A replay of the programs that the named or the user's database recorded. Raises BadInput where there are none."""
    path = database_to_browse(options)
    if path is None:
        raise BadInput("there is no database yet to replay: name one, or watch the demo with emmy-tui --demo")
    if not options.read_only:
        _upgrade(path)
    try:
        with Store.open(path, read_only=True) as store:
            recorded = any(store.recorded_groupings(run.id) for run in store.runs())
    except StoreError as error:
        raise BadInput(error.named_by(TO_LOOK)) from None
    if not recorded:
        look = shlex.join(["emmy-tui", str(path)])
        raise BadInput(f"{path} holds no measured program to replay; look through what it holds with {look}")
    return _replay(options, lambda: path, path.name, str(path))


def _replay(
    options: argparse.Namespace, locate: Callable[[], Path], title: str, database: str, kernels: Sequence[str] = ()
) -> Source:
    """A search over what a database recorded of these kernels, or of all its programs."""

    def replay() -> Session:
        from emmy_tui.sessions import replayed

        pace = DEMO_PACE_S if options.pace is None else options.pace
        return replayed(
            locate(), patience=options.patience, seed=options.seed, pace=pace, kernels=kernels, log=options.log
        )

    return SessionSource(replay, Mode.REPLAY, title, database, locate=locate)


def retune_source(options: argparse.Namespace, database: Path, wanted: Sequence[Again]) -> Source:
    """A session that tunes kernels of a database again; it waits to be started. Raises BadInput for what is missing."""
    _check_machine(options.device)
    _check_readable(database, TO_LOOK)
    if not _can_write(database):
        raise BadInput(f"the database {database} can't be written; copy it to a folder of yours")

    def again() -> Session:
        from emmy_tui.sessions import tuned_again

        command = shlex.join(["emmy-tui", *sys.argv[1:]])
        return tuned_again(
            database,
            wanted,
            patience=options.patience,
            seed=options.seed,
            device=options.device,
            command=command,
            log=options.log,
        )

    title = f"again: {', '.join(one.label for one in wanted)}"
    return SessionSource(
        again, Mode.LIVE, title, str(database), autostart=False, locate=lambda: database, queue=queue_of
    )


def queue_of(session: Session, wanted: Sequence[Again]) -> None:
    """Put kernels behind what a session is at; called on a thread of its own."""
    from emmy_tui.sessions import queue_behind

    queue_behind(session, wanted)


def _live_source(options: argparse.Namespace, database: Path) -> Source:
    def tune() -> Session:
        from emmy_tui.sessions import tuned

        command = shlex.join(["emmy-tui", *sys.argv[1:]])
        return tuned(
            options.code,
            database,
            patience=options.patience,
            seed=options.seed,
            device=options.device,
            command=command,
            log=options.log,
        )

    return SessionSource(tune, Mode.LIVE, options.code, str(database), locate=lambda: database, queue=queue_of)


def frame_of(options: argparse.Namespace) -> str:
    """What the demo's, the named or the user's database says now, as text. Raises BadInput."""
    path = demo_path() if options.demo else database_to_browse(options)
    if path is None:
        raise BadInput("there is no database yet: name one, or make one with emmy tune --code TEXT")
    try:
        with Store.open(path, read_only=True) as store:
            latest = store.latest_run()
            lost = latest is not None and Listener(latest).lost(store, time.time())
        return frame(recorded_events(path), path, ascii_only=options.ascii, lost=lost)
    except StoreError as error:
        raise BadInput(error.named_by(TO_LOOK)) from None
