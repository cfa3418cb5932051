"""What leaves the screen: clipboard escapes, files that never replace one, and sentences that name them."""

from __future__ import annotations

import base64
import os
import shlex
import shutil
import subprocess
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emmy_tui.clipboard import clipboard_escape, load_tmux_buffer, through_tmux
from emmy_tui.outlet import Outlet, command_text, short_path
from emmy_tui.text import escaped


class Said:
    def __init__(self, tmp_path: Path, *, in_tmux: bool = False, takes: bool = True) -> None:
        self.sentences: list[tuple[str, str]] = []
        self.sent: list[str] = []
        self.buffers: list[str] = []

        def load(text: str) -> bool:
            self.buffers.append(text)
            return takes

        self.outlet = Outlet(
            lambda text, severity: self.sentences.append((severity, text)),
            self.sent.append,
            folder=tmp_path / "out",
            copy_file=tmp_path / "cache" / "copied.txt",
            clock=lambda: 1_780_000_000.0,
            in_tmux=in_tmux,
            load_buffer=load,
        )


def test_copying_sends_an_escape_and_writes_a_file(tmp_path: Path) -> None:
    said = Said(tmp_path)
    said.outlet.copy("BLOCK_M=64 ★", "knobs")
    (escape,) = said.sent
    assert base64.b64decode(escape.removeprefix("\x1b]52;c;").removesuffix("\x07")).decode() == "BLOCK_M=64 ★"
    assert (tmp_path / "cache" / "copied.txt").read_text() == "BLOCK_M=64 ★\n"
    where = short_path(tmp_path / "cache" / "copied.txt")
    assert said.sentences == [("information", f"knobs copied, if the terminal takes OSC 52; also in {where}")]
    assert said.buffers == []


def test_within_tmux_its_own_command_takes_the_text(tmp_path: Path) -> None:
    said = Said(tmp_path, in_tmux=True)
    said.outlet.copy("BLOCK_M=64", "knobs")
    assert (said.buffers, said.sent) == (["BLOCK_M=64"], [])
    ((severity, text),) = said.sentences
    assert severity == "information"
    assert text.startswith("knobs copied to tmux (prefix ] pastes); also in ")
    assert (tmp_path / "cache" / "copied.txt").read_text() == "BLOCK_M=64\n"


def test_where_tmux_takes_nothing_the_escape_goes_both_ways_and_it_is_said(tmp_path: Path) -> None:
    said = Said(tmp_path, in_tmux=True, takes=False)
    said.outlet.copy("x", "knobs")
    escape = clipboard_escape("x")
    assert said.sent == [f"{escape}\x1bPtmux;\x1b{escape}\x1b\\"] == [through_tmux(escape)]
    assert said.sentences[0][1].startswith("knobs copied, if tmux and the terminal take OSC 52; also in ")


def test_a_real_tmux_holds_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("there is no tmux here")
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    monkeypatch.delenv("TMUX", raising=False)
    assert not load_tmux_buffer("nobody is there")
    subprocess.run(["tmux", "-f", os.devnull, "new-session", "-d", "sleep 60"], check=True)
    try:
        assert load_tmux_buffer("BLOCK_M=64 ★")
        shown = subprocess.run(["tmux", "show-buffer"], capture_output=True, check=True)
        assert shown.stdout.decode() == "BLOCK_M=64 ★"
    finally:
        subprocess.run(["tmux", "kill-server"], check=False)


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


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12), min_size=1))
def test_a_copied_command_is_one_line_that_a_shell_reads_as_the_same_words(words: list[str]) -> None:
    text = command_text(shlex.join(words))
    assert escaped(text) == text
    assert shell_words(text) == words


def test_a_line_break_of_somebody_elses_command_runs_nothing() -> None:
    text = command_text("ma\x1b[31mt\ntouch /elsewhere\u202e")
    assert text == "$'ma\\U0000001b[31mt' touch $'/elsewhere\\U0000202e'"


@pytest.mark.parametrize("command", ["it's\n", "a\0b", "a\n\udc80"])
def test_a_command_that_no_shell_takes_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match=r"quotation|character"):
        command_text(command)


@given(st.text())
def test_nothing_that_acts_on_a_terminal_is_copied(text: str) -> None:
    sent: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "copied.txt"
        Outlet(lambda text, severity: None, sent.append, copy_file=copied, in_tmux=False).copy(text, "text")
        kept = copied.read_text(encoding="utf-8").removesuffix("\n")
    assert escaped(kept) == kept
    assert not any(unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp") for one in kept)
    assert base64.b64decode(sent[0].removeprefix("\x1b]52;c;").removesuffix("\x07")).decode() == kept


def shell_words(text: str) -> list[str]:
    """What a shell makes of the line."""
    told = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {text}"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    return told.stdout.decode().split("\0")[:-1]
