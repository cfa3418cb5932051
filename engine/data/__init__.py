"""Where the recorded demo database comes from: shipped packed, unpacked once into the user's data folder.

The shipped file is no database yet, and the folder of an install may be read-only, while people pin schedules and
write notes in the demo as in any database; replaying writes nothing. Each shipped recording has a copy of its own,
named by the recording's fingerprint, so that an update never replaces a file that is in use.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import os
import shutil
import tempfile
import zlib
from pathlib import Path

import platformdirs

__all__ = ["SHIPPED_DEMO", "SHIPPED_PRIOR_MODELS", "SHIPPED_PRIOR_ROWS", "DemoMissing", "demo_database"]

SHIPPED_DEMO = Path(__file__).parent / "demo.db.gz"
"""The recorded database, packed with `gzip -9n`."""

SHIPPED_PRIOR_ROWS = Path(__file__).parent / "prior_rows.npz"
SHIPPED_PRIOR_MODELS = Path(__file__).parent / "prior_models.npz"
"""What a machine that has measured nothing starts from; `python -m tests.bench.prior_rows` makes both."""

_ELSEWHERE = "set XDG_DATA_HOME to a folder that you can write to"


class DemoMissing(Exception):
    """The demo can't be had; the text says why and what to do."""


def demo_database(folder: Path | None = None, shipped: Path = SHIPPED_DEMO) -> Path:
    """Path of the writable copy of the shipped demo, made if it isn't there.

    `folder` defaults to the user's data folder. Raises DemoMissing if this install has no demo or the copy can't
    be written.
    """
    folder = folder or platformdirs.user_data_path("emmy", appauthor=False)
    if not shipped.is_file():
        raise DemoMissing(
            f"this install has no demo database ({shipped} is missing); reinstall emmy-tui, or name a database"
        )
    try:
        fingerprint = hashlib.sha256(shipped.read_bytes()).hexdigest()[:8]
        copy = folder / f"demo-{fingerprint}.db"
        if not copy.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            _unpack(shipped, copy)
    except (OSError, EOFError, zlib.error) as error:
        raise DemoMissing(f"the demo could not be copied to {folder}: {_cause(error)}; {_way_out(error)}") from error
    return copy


def _cause(error: Exception) -> str:
    """What the system said, without its number."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _way_out(error: Exception) -> str:
    """What to do about a copy that failed: it depends on what the system said."""
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        return "the packed file is spoiled: reinstall emmy-tui"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"free some space there, or {_ELSEWHERE}"
    return _ELSEWHERE


def _unpack(shipped: Path, copy: Path) -> None:
    """Write beside the goal, then link: a reader never sees half a file, and whoever comes second keeps the first."""
    descriptor, name = tempfile.mkstemp(dir=copy.parent, prefix=f"{copy.name}.")
    try:
        with os.fdopen(descriptor, "wb") as unpacked, gzip.open(shipped) as packed:
            shutil.copyfileobj(packed, unpacked)
        try:
            os.link(name, copy)
        except FileExistsError:
            return
        except OSError:  # a file system without hard links
            os.replace(name, copy)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
