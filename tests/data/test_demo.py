"""The copy of the demo: made once, kept while it is in use, never the shipped file itself."""

from __future__ import annotations

import errno
import gzip
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.data import SHIPPED_DEMO, DemoMissing, demo_database


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    path = tmp_path / "shipped" / "demo.db.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(b"recording one", mtime=0))
    return path


def test_the_copy_is_unpacked_once_and_then_kept(tmp_path: Path, shipped: Path) -> None:
    folder = tmp_path / "data" / "emmy"
    copy = demo_database(folder, shipped)
    assert copy.read_bytes() == b"recording one"
    copy.write_bytes(b"pinned into")
    assert demo_database(folder, shipped) == copy
    assert copy.read_bytes() == b"pinned into"
    assert gzip.decompress(shipped.read_bytes()) == b"recording one"
    assert [path.name for path in folder.iterdir()] == [copy.name]


def test_another_recording_gets_a_copy_of_its_own(tmp_path: Path, shipped: Path) -> None:
    first = demo_database(tmp_path / "data", shipped)
    shipped.write_bytes(gzip.compress(b"recording two", mtime=0))
    second = demo_database(tmp_path / "data", shipped)
    assert (first.read_bytes(), second.read_bytes()) == (b"recording one", b"recording two")


def test_many_at_once_get_the_same_whole_copy(tmp_path: Path, shipped: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        copies = set(pool.map(lambda _: demo_database(tmp_path / "data", shipped), range(32)))
    assert len(copies) == 1
    assert copies.pop().read_bytes() == b"recording one"


def test_without_hard_links(tmp_path: Path, shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    assert demo_database(tmp_path / "data", shipped).read_bytes() == b"recording one"


def test_the_folder_is_the_users(tmp_path: Path, shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    assert demo_database(shipped=shipped).is_relative_to(tmp_path / "home" / "emmy")


def test_a_missing_demo_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(DemoMissing, match=r"no demo database .*reinstall"):
        demo_database(tmp_path, tmp_path / "none.gz")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda packed: packed[:-6],
        lambda packed: b"not packed at all",
        lambda packed: packed[:12] + b"\xff" * 8 + packed[20:],
    ],
    ids=["cut", "not packed", "garbled"],
)
def test_a_spoiled_file_leaves_no_copy(tmp_path: Path, shipped: Path, spoil: object) -> None:
    shipped.write_bytes(spoil(shipped.read_bytes()))
    with pytest.raises(DemoMissing, match=r"could not be copied .*reinstall emmy-tui"):
        demo_database(tmp_path / "data", shipped)
    assert list((tmp_path / "data").iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path, shipped: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DemoMissing, match="XDG_DATA_HOME"):
        demo_database(tmp_path / "file" / "emmy", shipped)


@pytest.mark.parametrize(
    ("number", "words", "other"),
    [
        (errno.ENOSPC, "free some space there, or set XDG_DATA_HOME", "reinstall"),
        (errno.EDQUOT, "free some space there, or set XDG_DATA_HOME", "reinstall"),
        (errno.EACCES, "; set XDG_DATA_HOME to a folder that you can write to", "free some space"),
        (errno.EPERM, "; set XDG_DATA_HOME to a folder that you can write to", "free some space"),
        (errno.EROFS, "; set XDG_DATA_HOME to a folder that you can write to", "free some space"),
        (errno.ENOTDIR, "; set XDG_DATA_HOME to a folder that you can write to", "free some space"),
    ],
    ids=lambda value: errno.errorcode[value] if isinstance(value, int) else "",
)
def test_the_advice_follows_what_the_system_said(
    tmp_path: Path, shipped: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str, other: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(DemoMissing) as refused:
        demo_database(tmp_path / "data", shipped)
    assert os.strerror(number) in str(refused.value)
    assert words in str(refused.value)
    assert other not in str(refused.value)


def test_the_demo_is_shipped_packed() -> None:
    assert SHIPPED_DEMO.name == "demo.db.gz"
    assert not SHIPPED_DEMO.is_file() or SHIPPED_DEMO.stat().st_size < 20_000_000
