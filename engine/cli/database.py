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
from engine.typed_path import BadPath, typed_path


def chosen_database(named: Path | None, demo: bool) -> Path:
    """Its path; the file need not exist. Leaves with exit code 2 if the choice contradicts itself or can't be had."""
    if demo and named is not None:
        raise refuse("--demo brings its own database: leave --db or --demo away")
    with refusing(DemoMissing, BadPath):
        return demo_database() if demo else typed_path(named or default_database_path())


def made_database(named: Path | None, demo: bool = False) -> Path:
    """`chosen_database` for a command that makes the file where there is none; leaves with exit code 2 where a folder
    that was named isn't there: that is a slip of the keyboard more often than a wish."""
    path = chosen_database(named, demo)
    if named is not None:
        refuse_without_folder(path, "--db")
    return path


def refuse_without_folder(path: Path, option: str) -> None:
    """Leaves with exit code 2 where the folder that a file is to be made in isn't there."""
    if not path.parent.is_dir():
        raise refuse(f"there is no folder {path.parent} to put {path.name} in: make it, or name another with {option}")


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
