"""A full disk stops no looking: what SQLite needs beside the file isn't made there, and nothing is left behind."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.store import Store, StoreFull


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few MiB of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a disk can't be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill_up(place: Path) -> None:
    with (place / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    assert shutil.disk_usage(place).free == 0


def test_a_full_disk_is_looked_through(small_disk: Path) -> None:
    path = small_disk / "tune.db"
    Store.open(path).close()
    fill_up(small_disk)
    before = sorted(os.listdir(small_disk))
    with Store.open(path, read_only=True) as store:
        assert not store.runs()
        assert store.frozen
        assert store.frozen_because == "full disk"
    assert sorted(os.listdir(small_disk)) == before
    with pytest.raises(StoreFull), Store.open(path) as writer:
        writer.forbid({"NUM_WARPS": 4}, family="contraction", author="ana")


@pytest.mark.parametrize("name", ["tune.db", "new.db"])
def test_a_writer_that_finds_a_full_disk_leaves_nothing_there(small_disk: Path, name: str) -> None:
    Store.open(small_disk / "tune.db").close()
    fill_up(small_disk)
    before = sorted(os.listdir(small_disk))
    with pytest.raises(StoreFull, match="no space left on the disk"):
        Store.open(small_disk / name)
    assert sorted(os.listdir(small_disk)) == before


NO_ROOM_FOR_ME = """
import resource, sys
from pathlib import Path
from engine.store import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with Store.open(Path(sys.argv[1]), read_only=True) as store:
    print(len(store.forbidden()), store.frozen_because, store.thaws)
"""


def test_where_a_user_may_write_no_more_the_file_is_read_as_it_is(tmp_path: Path) -> None:
    """As by a quota: the disk has space, and a file that this process makes gets none."""
    path = tmp_path / "tune.db"
    with Store.open(path) as store:
        store.forbid({"NUM_WARPS": 4}, family="contraction", author="ana")
    for _ in range(2):  # also beside the empty log that SQLite leaves
        read = subprocess.run([sys.executable, "-c", NO_ROOM_FOR_ME, str(path)], capture_output=True, text=True)
        assert (read.stdout, read.stderr) == ("1 no room for its index False\n", "")
    with Store.open(path) as store:
        assert len(store.forbidden()) == 1
        assert not store.frozen


def test_what_froze_for_a_full_disk_thaws_with_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tune.db"
    Store.open(path).close()
    full = True
    monkeypatch.setattr("engine.store.connection.is_full", lambda path, error=None: full)
    with Store.open(path, read_only=True) as store:
        assert (store.frozen, store.thaws) == (True, False)
        full = False
        assert store.thaws
    with Store.open(path, read_only=True) as store:
        assert (store.frozen, store.thaws) == (False, False)


def test_rows_in_the_log_are_seen_too(small_disk: Path) -> None:
    """A writer that is there keeps the index, which is read as it is; after a kill the log is copied elsewhere."""
    path = small_disk / "tune.db"
    writer = Store.open(path)
    writer.forbid({"NUM_WARPS": 4}, family="contraction", author="ana")
    fill_up(small_disk)
    with Store.open(path, read_only=True) as store:
        assert len(store.forbidden()) == 1
        assert not store.frozen
    away = small_disk.parent / "killed"
    away.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", away)
    writer.close()
    for file in small_disk.iterdir():
        file.unlink()
    for file in away.iterdir():
        shutil.copy(file, small_disk)
    fill_up(small_disk)
    with Store.open(path, read_only=True) as store:
        assert store.frozen_because == "full disk"
        assert len(store.forbidden()) == 1
    assert not path.with_name("tune.db-shm").exists()


def test_a_reader_is_frozen_where_the_disk_says_that_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tune.db"
    Store.open(path).close()
    monkeypatch.setattr("engine.store.errors.free_bytes", lambda folder: 0.0)
    with Store.open(path, read_only=True) as store:
        assert store.frozen_because == "full disk"
    assert [file.name for file in tmp_path.iterdir()] == ["tune.db"]
    assert sqlite3.connect(path).execute("SELECT count(*) FROM run").fetchone() == (0,)
