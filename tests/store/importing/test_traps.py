"""What is no file is not imported, and doesn't hold up or read without end whoever named it."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from engine.store import NotResults, read_document
from engine.store.importing import reading


def test_a_pipe_that_nobody_writes_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotResults, match=r"pipe is a pipe or a device, and no file: name a file of `emmy export`"):
        read_document(tmp_path / "pipe")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_a_device(device: str) -> None:
    with pytest.raises(NotResults, match=f"{device} is a pipe or a device"):
        read_document(Path(device))


def test_more_text_than_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_BYTES", 1 << 20)
    large = tmp_path / "large.json"
    with large.open("wb") as written:
        written.truncate(1 << 40)
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(b" " * ((1 << 20) + 1)))
    for file in (large, packed):
        with pytest.raises(NotResults, match="holds more than 1 MiB of text, which is the most that is read"):
            read_document(file)
    packed.write_bytes(gzip.compress(b"{}" + b" " * ((1 << 20) - 2)))
    assert read_document(packed) == {}
