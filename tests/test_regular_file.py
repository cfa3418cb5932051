"""Only what is a file is read, and not more of it than wanted; nothing that isn't one is waited for."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from engine.regular_file import LargeFile, NoRegularFile, open_regular, read_regular


def test_a_file_is_read_whole_up_to_the_bound(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_regular(file, 5) == b"12345"
    link = tmp_path / "link"
    link.symlink_to(file)
    assert read_regular(link, 9) == b"12345"
    with pytest.raises(LargeFile) as caught:
        read_regular(file, 4)
    assert caught.value.strerror == "it holds more than 4 bytes, which is the most that is read"


def test_a_hole_of_a_terabyte_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with file.open("wb") as written:
        written.truncate(1 << 40)
    with pytest.raises(LargeFile, match="more than 8 MiB"):
        read_regular(file, 8 << 20)


@pytest.mark.parametrize("written_to", [False, True])
def test_a_pipe_is_neither_waited_for_nor_read(tmp_path: Path, written_to: bool) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ends = [os.open(pipe, os.O_RDWR)] if written_to else []
    try:
        for end in ends:
            os.write(end, b"keys")
        with pytest.raises(NoRegularFile, match="a pipe or a device"):
            open_regular(pipe)
        for end in ends:
            assert os.read(end, 9) == b"keys"
    finally:
        for end in ends:
            os.close(end)


def test_what_is_typed_at_a_terminal_stays_there() -> None:
    here, there = os.openpty()
    try:
        os.write(here, b"keys\n")
        with pytest.raises(NoRegularFile):
            read_regular(Path(os.ttyname(there)), 9)
        assert os.read(there, 9) == b"keys\n"
    finally:
        os.close(here)
        os.close(there)


def test_devices_sockets_folders_and_nothing(tmp_path: Path) -> None:
    with pytest.raises(NoRegularFile):
        read_regular(Path("/dev/zero"), 9)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        with pytest.raises(NoRegularFile):
            read_regular(tmp_path / "socket", 9)
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path, 9)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", 9)


def test_nothing_stays_open(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for most in (9, 4):
        try:
            read_regular(file, most)
        except LargeFile:
            assert most == 4
    assert not before or len(os.listdir("/proc/self/fd")) == before
