"""A database to be read where there may be none yet: it is as one without rows, and nothing is made for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.store.store import Store


@contextmanager
def opened_to_read(path: Path, *, may_be_missing: bool) -> Iterator[Store]:
    """The database, closed after the block. One without rows where there is no file, and it `may_be_missing`.

    Raises StoreError.
    """
    if may_be_missing and not path.exists():
        with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "empty.db") as store:
            yield store
        return
    with Store.open(path, read_only=True) as store:
        yield store
