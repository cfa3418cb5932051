"""What is written appears whole or not at all, on a disk that is full too, and never over what is there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from emmy_tui.outlet import Outlet
from emmy_tui.whole_file import write_new, write_whole


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are made, and nothing fits in them."""

    def write_text(self: Path, text: str, **named: object) -> int:
        self.open("w").close()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))

    monkeypatch.setattr(Path, "write_text", write_text)


def test_new_files_take_the_first_free_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("old")
    paths = write_new(tmp_path, "a", {"csv": "new", "svg": "picture"})
    assert [path.name for path in paths] == ["a-2.csv", "a.svg"]
    assert [path.read_text() for path in paths] == ["new", "picture"]
    assert sorted(os.listdir(tmp_path)) == ["a-2.csv", "a.csv", "a.svg"]
    assert (tmp_path / "a.csv").read_text() == "old"


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space"):
        write_new(tmp_path, "a", {"csv": "new", "svg": "picture"})
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "copied.txt", "text")
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("full_disk")
def test_an_export_says_so(tmp_path: Path) -> None:
    said: list[tuple[str, str]] = []
    outlet = Outlet(lambda text, severity: said.append((severity, text)), lambda escapes: None, folder=tmp_path)
    outlet.write("variants", {"csv": "a,b\n"})
    ((severity, text),) = said
    assert severity == "warning"
    assert "No space left" in text
    assert os.listdir(tmp_path) == []


def test_what_was_copied_before_stays_where_nothing_fits(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = tmp_path / "copied.txt"
    write_whole(path, "first")
    request.getfixturevalue("full_disk")
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "second")
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["copied.txt"]


def test_a_link_and_a_device_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", "text")
    write_whole(Path(os.devnull), "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "text"


def test_an_export_from_a_folder_that_is_gone(tmp_path: Path) -> None:
    said: list[str] = []
    before, folder = Path.cwd(), tmp_path / "gone"
    folder.mkdir()
    os.chdir(folder)
    folder.rmdir()
    try:
        Outlet(lambda text, severity: said.append(text), lambda escapes: None).write("screen", {"svg": "picture"})
    finally:
        os.chdir(before)
    assert said == ["the working folder is gone; name an export_folder in the config file"]
