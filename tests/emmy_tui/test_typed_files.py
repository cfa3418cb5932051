"""A file's name that can't be meant is a sentence beside the line, in the settings and on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from textual.pilot import Pilot

from emmy_tui.app import EmmyApp
from emmy_tui.config import BadConfig
from emmy_tui.main import BAD_INPUT, arguments_parser, main
from emmy_tui.preferences import configured, look_of
from emmy_tui.prompt import Prompt
from emmy_tui.tabs.compare import CompareTab
from tests.emmy_tui.looking import running, screen_text
from tests.emmy_tui.measured import fill, over, press, settled
from tests.emmy_tui.two_runs import record_runs

NOBODY = "~nosuchuserhere/x.json"


async def judged(app: EmmyApp, pilot: Pilot[None], text: str) -> str:
    """What stands beside the line with this text, and that enter leads nowhere from there."""
    line = app.screen.focused
    line.value = text  # type: ignore[union-attr]
    await settled(app, pilot)
    before = screen_text(app)
    await press(app, pilot, "enter")
    assert isinstance(app.screen, Prompt)
    return before


@pytest.mark.parametrize(("tab", "key"), [("5", "o"), ("6", "I")])
async def test_a_file_that_can_not_be_meant_is_judged(tab: str, key: str, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    app = over(fill(tmp_path / "tune.db", rows=4))
    async with running(app, (120, 30)) as pilot:
        await press(app, pilot, tab, key)
        for text, words in (
            ("~x", "there is no user x"),
            (NOBODY, "there is no user nosuchuserhere"),
            ("x" * 300, "too long"),
            (str(tmp_path / "circle"), "in a circle"),
            (str(tmp_path), "is a folder"),
            (str(tmp_path / "none"), "is no file"),
        ):
            assert words in " ".join(await judged(app, pilot, text) and screen_text(app).split())
        await press(app, pilot, "escape")
        assert len(app.screen_stack) == 1
        assert app.crash is None


async def test_a_file_that_went_meanwhile_is_a_warning(tmp_path: Path) -> None:
    app = over(record_runs(tmp_path / "tune.db"))
    async with running(app, (120, 30)) as pilot:
        await press(app, pilot, "5", "o")
        other = record_runs(tmp_path / "other.db")
        line = app.screen.focused
        line.value = str(other)  # type: ignore[union-attr]
        await settled(app, pilot)
        other.unlink()
        await press(app, pilot, "enter")
        assert "is no file" in screen_text(app)
        assert isinstance(app.compare, CompareTab)
        assert app.compare.choice.other is None


@pytest.mark.parametrize(
    "arguments",
    [[NOBODY], ["--once", NOBODY], ["--code", "f(x)", "--db", NOBODY], ["--once", "x" * 300], ["--log-file", NOBODY]],
)
def test_the_command_line_refuses_in_a_sentence(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emmy_tui.terminal.refuse_because", lambda environ: None)
    monkeypatch.setattr("emmy_tui.main.supervise", lambda log, log_file: None)
    assert main(arguments) == BAD_INPUT
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "there is no user nosuchuserhere" in said or "too long" in said


@pytest.mark.parametrize("name", ["EXPORT_FOLDER", "COPY_FILE", "LOG_FILE"])
def test_a_setting_refuses_in_a_sentence(name: str) -> None:
    options = arguments_parser().parse_args([])
    with pytest.raises(BadConfig, match=f"EMMY_TUI_{name}: {name.lower()}: there is no user nosuchuserhere"):
        configured(options, {f"EMMY_TUI_{name}": NOBODY, "XDG_CONFIG_HOME": "/nonexistent"})


def test_settings_are_paths_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    options = arguments_parser().parse_args([])
    environ = {"EMMY_TUI_EXPORT_FOLDER": "~/out", "XDG_CONFIG_HOME": "/nonexistent"}
    assert look_of(configured(options, environ), environ).export_folder == tmp_path / "out"


def test_a_working_folder_that_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    program = (
        "import os, sys; os.mkdir(sys.argv[1]); os.chdir(sys.argv[1]); os.rmdir(sys.argv[1])\n"
        "from emmy_tui.main import main\n"
        "print('status', main(['--once', 'x.db']))"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True, env=environ
    )
    assert f"status {BAD_INPUT}" in done.stdout
    assert "working folder is gone" in done.stderr
    assert done.stderr.count("\n") == 1
