"""Which database a command works on: the one that was named, the demo's copy, or the user's own; and its opening.

A row that can't be read costs one sentence on stderr, and the command goes on with the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.cli.errors import complain, refuse, refusing
from engine.data import DemoMissing, demo_database
from engine.store import LeftOut, Store, StoreError, default_database_path, remove_database


def chosen_database(named: Path | None, demo: bool) -> Path:
    """Its path; the file need not exist. Leaves with exit code 2 if the choice contradicts itself or can't be had."""
    if demo and named is not None:
        raise refuse("--demo brings its own database: leave --db or --demo away")
    with refusing(DemoMissing):
        return demo_database() if demo else named or default_database_path()


@contextmanager
def opened(path: Path, *errors: type[Exception], read_only: bool = True) -> Iterator[Store]:
    """The database, which must be there. A StoreError inside, or one of `errors`, leaves as `refusing` does."""
    with (
        refusing(StoreError, *errors),
        Store.open(path, read_only=read_only, create=False) as store,
        telling_left_out(store),
    ):
        yield store


@contextmanager
def telling_left_out(store: Store) -> Iterator[None]:
    """At the end, say which of the rows that were met can't be read."""
    try:
        yield
    finally:
        LeftOut(store, complain).tell()


@contextmanager
def made_whole(path: Path) -> Iterator[None]:
    """Around the opening of a database that may be made here: one that then can't be filled is taken away again."""
    existed = path.exists()
    try:
        yield
    except BaseException:
        if not existed:
            with suppress(OSError):
                remove_database(path)
        raise
