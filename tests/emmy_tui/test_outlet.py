"""What leaves the screen: clipboard escapes, files that never replace one, and sentences that name them."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from emmy_tui.outlet import Outlet, clipboard_escapes, short_path


class Said:
    def __init__(self, tmp_path: Path, *, in_tmux: bool = False) -> None:
        self.sentences: list[tuple[str, str]] = []
        self.sent: list[str] = []
        self.outlet = Outlet(
            lambda text, severity: self.sentences.append((severity, text)),
            self.sent.append,
            folder=tmp_path / "out",
            copy_file=tmp_path / "cache" / "copied.txt",
            clock=lambda: 1_780_000_000.0,
            in_tmux=in_tmux,
        )


def test_copying_sends_an_escape_and_writes_a_file(tmp_path: Path) -> None:
    said = Said(tmp_path)
    said.outlet.copy("BLOCK_M=64 ★", "knobs")
    (escape,) = said.sent
    assert base64.b64decode(escape.removeprefix("\x1b]52;c;").removesuffix("\x07")).decode() == "BLOCK_M=64 ★"
    assert (tmp_path / "cache" / "copied.txt").read_text() == "BLOCK_M=64 ★\n"
    assert said.sentences == [("information", f"knobs copied; also in {short_path(tmp_path / 'cache' / 'copied.txt')}")]


def test_within_tmux_the_escape_also_goes_through(tmp_path: Path) -> None:
    escape = clipboard_escapes("x", in_tmux=False)
    assert clipboard_escapes("x", in_tmux=True) == f"{escape}\x1bPtmux;\x1b{escape}\x1b\\"


def test_files_are_named_after_the_moment_and_never_replaced(tmp_path: Path) -> None:
    said = Said(tmp_path)
    said.outlet.write("pins", {"json": "1"})
    said.outlet.write("pins", {"json": "2"})
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["emmy-pins-20260528-202640-2.json", "emmy-pins-20260528-202640.json"]
    assert (tmp_path / "out" / names[1]).read_text() == "1"
    assert all(severity == "information" and "emmy-pins" in text for severity, text in said.sentences)


@pytest.mark.parametrize("what", ["copy", "write"])
def test_a_folder_that_is_a_file_is_said(tmp_path: Path, what: str) -> None:
    (tmp_path / "out").write_text("")
    (tmp_path / "cache").write_text("")
    said = Said(tmp_path)
    if what == "copy":
        said.outlet.copy("x", "knobs")
    else:
        said.outlet.write("pins", {"json": "1"})
    ((severity, text),) = said.sentences
    assert severity == "warning"
    assert "can't be written" in text
